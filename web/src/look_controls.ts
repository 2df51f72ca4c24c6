/** How the result looks on the page, and what is saved of it: controls of which each is a preference. */
import { $, label, pressed, say } from "./dom";
import type { LiveLoop } from "./live_loop";
import { percent } from "./numbers";
import type { Preferences, Values } from "./preferences";
import { onPhone } from "./sheet";
import { strings } from "./strings";
import type { Viewer } from "./viewer";

const SLIDERS = ["strength", "steady", "quality"] as const; // in per cent
const BOXES = ["sound", "beside", "keep"] as const;
const LISTS = { "stroke-size": "strokes", format: "format" } as const;

export class LookControls {
  /** `now` is what draws, for a link; `restart`: as if the page had never been opened. */
  constructor(
    private readonly viewer: Viewer,
    private readonly live: LiveLoop,
    private readonly preferences: Preferences,
    private readonly now: () => Partial<Values>,
    restart: () => void,
  ) {
    for (const name of SLIDERS) this.on(name, "input", ({ value }) => preferences.set(name, Number(value) / 100));
    for (const name of BOXES) this.on(name, "change", ({ checked }) => preferences.set(name, checked));
    for (const [name, value] of Object.entries(LISTS))
      this.on(name, "change", (list) => preferences.set(value, list.value as never));
    $("stroke-size").addEventListener("change", () => live.again());
    $("compare").addEventListener("click", () => {
      const now = !this.compare;
      preferences.set("compare", now === !onPhone() ? undefined : now);
      this.show();
    });
    $("link").addEventListener("click", () => void this.copyLink());
    $("forget").addEventListener("click", () => {
      preferences.forget();
      this.show();
      restart();
      say(strings.forgotten);
    });
    this.show();
  }

  private on(name: string, event: string, take: (control: HTMLInputElement) => void): void {
    const control = $<HTMLInputElement>(name);
    control.addEventListener(event, () => {
      take(control);
      this.show();
    });
  }

  private get compare(): boolean {
    return this.preferences.get("compare") ?? !onPhone();
  }

  show(): void {
    const { viewer, live, preferences, compare } = this;
    for (const name of SLIDERS) {
      const share = Math.round(100 * preferences.get(name));
      $<HTMLInputElement>(name).value = String(share);
      label($(`${name}-value`), percent(share));
    }
    for (const name of BOXES) $<HTMLInputElement>(name).checked = preferences.get(name);
    $<HTMLSelectElement>("stroke-size").value = preferences.get("strokes");
    const format = $<HTMLSelectElement>("format");
    format.value = preferences.file.type.split("/")[1];
    format.disabled = preferences.get("background") === "clear";
    $("quality-row").hidden = format.value !== "jpeg";
    viewer.strength = preferences.get("strength");
    viewer.beside = preferences.get("beside");
    viewer.compare = compare;
    pressed($("compare"), compare);
    live.steady = preferences.get("steady");
  }

  /** Where the clipboard is closed to pages, the link is said, to be copied by hand. */
  private async copyLink(): Promise<void> {
    const link = this.preferences.link(this.now());
    try {
      await navigator.clipboard.writeText(link);
      say(strings.linkCopied);
    } catch {
      say(link);
    }
  }
}
