/** How the result looks on the page: its strength, the photo beside it; and what is remembered. */
import { $, pressed, say } from "./dom";
import type { LiveLoop } from "./live_loop";
import type { Preferences, Values } from "./preferences";
import { onPhone } from "./sheet";
import { strings } from "./strings";
import type { Viewer } from "./viewer";

const STEADY = 0.8; // by default; docs/results.md has what it takes away, and what it leaves behind

export class LookControls {
  private readonly strength = $<HTMLInputElement>("strength");
  private readonly steady = $<HTMLInputElement>("steady");
  private readonly sound = $<HTMLInputElement>("sound");
  private readonly full = $<HTMLInputElement>("full");
  private readonly strokes = $<HTMLSelectElement>("stroke-size");
  private readonly format = $<HTMLSelectElement>("format");
  private readonly quality = $<HTMLInputElement>("quality");
  private readonly beside = $<HTMLInputElement>("beside");

  /** `now` is what draws, for a link; `restart`: as if the page had never been opened. */
  constructor(
    private readonly viewer: Viewer,
    private readonly live: LiveLoop,
    private readonly preferences: Preferences,
    private readonly now: () => Partial<Values>,
    restart: () => void,
  ) {
    this.strength.addEventListener("input", () => {
      const share = Number(this.strength.value) / 100;
      preferences.set("strength", share === 1 ? undefined : share);
      this.show();
    });
    this.steady.addEventListener("input", () => {
      preferences.set("steady", Number(this.steady.value) / 100);
      this.show();
    });
    $("compare").addEventListener("click", () => {
      const now = !(preferences.get("compare") ?? !onPhone());
      preferences.set("compare", now === !onPhone() ? undefined : now);
      this.show();
    });
    this.sound.addEventListener("change", () => {
      preferences.set("sound", this.sound.checked ? undefined : false);
    });
    this.full.addEventListener("change", () => {
      preferences.set("full", this.full.checked ? undefined : false);
      live.again();
    });
    this.strokes.addEventListener("change", () => {
      preferences.set("strokes", this.strokes.value === "fine" ? "fine" : undefined);
      live.again();
    });
    this.format.addEventListener("change", () => {
      preferences.set("format", this.format.value === "png" ? "png" : undefined);
      this.show();
    });
    this.quality.addEventListener("input", () => {
      preferences.set("quality", Number(this.quality.value) / 100);
      this.show();
    });
    this.beside.addEventListener("change", () => {
      preferences.set("beside", this.beside.checked || undefined);
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

  show(): void {
    const share = this.preferences.get("strength") ?? 1;
    const compare = this.preferences.get("compare") ?? !onPhone();
    this.viewer.strength = share;
    this.viewer.compare = compare;
    this.strength.value = String(Math.round(100 * share));
    $("strength-value").textContent = strings.percent(Math.round(100 * share));
    const steady = this.preferences.get("steady") ?? STEADY;
    this.live.steady = steady;
    this.steady.value = String(Math.round(100 * steady));
    $("steady-value").textContent = strings.percent(Math.round(100 * steady));
    pressed($("compare"), compare);
    this.sound.checked = this.preferences.get("sound") ?? true;
    this.full.checked = this.preferences.get("full") ?? true;
    this.strokes.value = this.preferences.get("strokes") ?? "shown";
    const { type, quality } = this.preferences.file;
    this.format.value = type.split("/")[1];
    this.format.disabled = this.preferences.get("background") === "clear";
    $("quality-row").hidden = type !== "image/jpeg";
    this.quality.value = String(Math.round(100 * quality));
    $("quality-value").textContent = strings.percent(Math.round(100 * quality));
    this.viewer.beside = this.beside.checked = this.preferences.get("beside") ?? false;
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
