/** Save: what is shown, as a file; an opened picture at its own size, with a bar until it is drawn. */
import { $, label, reason, say } from "./dom";
import type { Engine } from "./engine";
import type { LiveLoop } from "./live_loop";
import type { Preferences } from "./preferences";
import { encoded, saveFile } from "./save";
import { readFull } from "./sources";
import { strings } from "./strings";
import type { Viewer } from "./viewer";

export class SaveControls {
  /** The opened picture's file; null while something moves. */
  picture: Blob | null = null;
  private work: AbortController | null = null;
  private readonly button = $("save");
  private readonly named: Record<string, string> = {}; // what the button says of itself, in full

  /** `style` names the file. */
  constructor(
    private readonly engine: Engine,
    private readonly live: LiveLoop,
    private readonly viewer: Viewer,
    private readonly style: () => string,
    private readonly preferences: Preferences,
  ) {
    for (const name of ["aria-label", "title"]) this.named[name] = this.button.getAttribute(name)!;
    this.button.addEventListener("click", () => {
      if (this.work) this.work.abort();
      else void this.save();
    });
  }

  private async save(): Promise<void> {
    const style = this.style();
    say("");
    try {
      const frame = await this.larger();
      if (!frame) return saveFile(await encoded(this.viewer.picture(), this.preferences.file), style);
      const { width, height } = frame;
      const made = await this.drawn(frame);
      if (!made) return;
      saveFile(made, style);
      say(strings.full.done(width, height));
    } catch (error) {
      say(strings.full.failed(reason(error)));
    }
  }

  /** The picture, where it has more pixels than what is shown; a network of one size draws no more. */
  private async larger(): Promise<ImageBitmap | null> {
    const { picture } = this;
    const { now } = this.live;
    if (!picture || !now || now.student.fixed || !(this.preferences.get("full") ?? true)) return null;
    const frame = await readFull(picture);
    if (Math.max(frame.width, frame.height) > this.viewer.drawnSide) return frame;
    frame.close();
    return null;
  }

  private async drawn(frame: ImageBitmap): Promise<Blob | null> {
    const { signal } = (this.work = new AbortController());
    const begun = performance.now();
    this.tell(0, 0);
    const { student } = this.live.now!;
    const { mirror, part } = this.live;
    const wanted = { student, frame, mirror, part };
    const report = (share: number) => this.tell(share, performance.now() - begun);
    try {
      return await this.engine.drawFull(wanted, this.viewer.look, this.preferences.file, report, signal);
    } finally {
      this.work = null;
      this.tell(null, 0);
    }
  }

  /** The share that is done, after so many ms; null: nothing is being drawn. */
  private tell(share: number | null, ms: number): void {
    const on = share !== null;
    $("save-progress").hidden = !on;
    label(this.button.querySelector("span")!, on ? strings.video.cancel : strings.full.save);
    this.button.querySelector("use")!.setAttribute("href", on ? "#i-cancel" : "#i-save");
    for (const [name, said] of Object.entries(this.named))
      this.button.setAttribute(name, on ? strings.full.cancel : said);
    if (!on) return;
    $<HTMLProgressElement>("save-bar").value = share;
    const left = share > 0 ? (ms / 1000) * (1 / share - 1) : null;
    label($("save-text"), strings.video.progress(Math.floor(100 * share), left));
  }
}
