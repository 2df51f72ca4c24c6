/** What is drawn: everything, or a part alone. The network that finds it comes once it is wanted. */
import faces from "../networks/blazeface_short_range/blazeface_short_range.onnx?url";
import people from "../networks/selfie_segmentation/selfie_segmentation.onnx?url";
import { $, reason, say, unsay } from "./dom";
import type { Engine } from "./engine";
import type { LiveLoop } from "./live_loop";
import type { Preferences } from "./preferences";
import { FOUND_BY, type Finder, type Part } from "./protocol";
import { strings } from "./strings";

/** The networks that find parts, as the page's folder names them. */
export const finderNetworks: Record<Finder, string> = { people: named(people), faces: named(faces) };

function named(url: string): string {
  return url.replace(new URL(".", location.href).href, "");
}

export class PartControls {
  private readonly select = $<HTMLSelectElement>("draw");
  private wanted: Part = "everything";
  private said = "";

  /** `changed`: inferences take more or less from now on. */
  constructor(
    private readonly engine: Engine,
    private readonly live: LiveLoop,
    private readonly preferences: Preferences,
    private readonly changed: () => void,
  ) {
    this.select.addEventListener("change", () => void this.take(this.select.value as Part, true));
    live.onFound = (found) => this.tell(found);
    void this.take(preferences.get("draw") ?? "everything", false);
  }

  /** As if the page had never been opened. */
  forget(): void {
    void this.take("everything", false);
  }

  /** What is drawn goes on until the network is there; where it does not come, everything is. */
  private async take(part: Part, picked: boolean): Promise<void> {
    this.wanted = part;
    this.select.value = part;
    if (picked) unsay(this.said);
    const finder = FOUND_BY[part];
    try {
      if (finder) await this.engine.bringFinder(finder, finderNetworks[finder]);
    } catch (error) {
      if (part !== this.wanted) return;
      this.draw("everything");
      this.said = strings.part.missing[finder!](reason(error));
      return say(this.said);
    }
    if (part !== this.wanted) return;
    if (picked) this.preferences.set("draw", part === "everything" ? undefined : part);
    this.draw(part);
  }

  private draw(part: Part): void {
    this.wanted = part;
    this.select.value = part;
    if (part === this.live.part) return;
    this.live.part = part;
    this.changed();
    this.live.again();
  }

  /** Of a picture without a face, which else would look as if nothing had happened. */
  private tell(found: boolean): void {
    const none = strings.part.noFace;
    if (found || this.live.part !== "faces") return unsay(none);
    if (!$("message").textContent) say((this.said = none)); // what else was said goes before it
  }
}
