/** What is drawn: everything, or people or background alone. The network for it comes once it is wanted. */
import network from "../networks/selfie_segmentation/selfie_segmentation.onnx?url";
import { $, reason, say, unsay } from "./dom";
import type { Engine } from "./engine";
import type { LiveLoop } from "./live_loop";
import type { Preferences } from "./preferences";
import type { Part } from "./protocol";
import { strings } from "./strings";

/** The network that tells people from background, as the page's folder names it. */
export const peopleNetwork = network.replace(new URL(".", location.href).href, "");

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
    void this.take(preferences.get("draw") ?? "everything", false);
  }

  /** As if the page had never been opened. */
  forget(): void {
    void this.take("everything", false);
  }

  /** Everything goes on being drawn until the network is there; where it does not come, for good. */
  private async take(part: Part, picked: boolean): Promise<void> {
    this.wanted = part;
    this.select.value = part;
    if (picked) unsay(this.said);
    try {
      if (part !== "everything") await this.engine.bringPeople(peopleNetwork);
    } catch (error) {
      if (part !== this.wanted) return;
      this.draw("everything");
      this.said = strings.part.missing(reason(error));
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
}
