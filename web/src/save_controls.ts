/** Save: what is shown, as a file; an opened picture at its own size, with a bar until it is drawn. */
import { $, label, reason, say } from "./dom";
import type { Engine } from "./engine";
import type { LiveLoop } from "./live_loop";
import { workBar } from "./loading";
import type { Preferences } from "./preferences";
import { STROKES, type BeginFullRequest, type Size, type Sticker, type Strokes } from "./protocol";
import { encoded, saveFile } from "./save";
import { readFull } from "./sources";
import { strings } from "./strings";
import type { Viewer } from "./viewer";

const LOOKED_AT: Size = { width: 256, height: 192 }; // pixels of the file, beside each other by strokes

/** An opened picture's file, and its size. */
interface Opened {
  file: Blob;
  full: Size;
}

export class SaveControls {
  private picture: Opened | null = null; // null while something moves
  private work: AbortController | null = null;
  private looking = new AbortController(); // at strokes
  private looked: Promise<void> = Promise.resolve();
  private lookedAt = "";
  private readonly button = $("save");
  private readonly both = $<HTMLDetailsElement>("strokes-both");
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
    this.both.addEventListener("toggle", () => this.describe());
  }

  /** What there is to save at its own size; null: what is shown alone. */
  offer(picture: Opened | null): void {
    this.picture = picture;
    $("full-row").hidden = !picture;
    this.describe();
  }

  /** Say what Save gives, of the picture as it is drawn now. */
  describe(): void {
    const { picture, viewer } = this;
    const student = this.live.now?.student;
    const larger = this.larger();
    const own = picture && this.preferences.get("full") ? Math.max(picture.full.width, picture.full.height) : 0;
    const strokes = student !== undefined && !student.fixed && own > viewer.drawnSide;
    $("strokes-row").hidden = this.both.hidden = !strokes;
    const { width, height } = larger ? larger.full : viewer.size;
    const said = !picture || !student ? "" : larger && student.fixed
      ? strings.full.givesFixed(student.name, student.fixed[1], student.fixed[0], width, height)
      : strings.full.gives(width, height);
    label($("save-gives"), said);
    const now = [student?.file, viewer.drawnSide, this.live.mirror, picture?.full.width, picture?.file.size].join();
    if (!strokes || !this.both.open || this.work || now === this.lookedAt) return;
    this.lookedAt = now;
    this.looking.abort();
    this.looking = new AbortController();
    this.looked = this.looked.then(() => this.look(picture!, this.looking.signal)).catch(() => {});
  }

  private async save(): Promise<void> {
    const style = this.style();
    say("");
    try {
      const larger = this.larger();
      if (!larger) return saveFile(await encoded(this.viewer.picture(), this.preferences.file), style);
      const frame = await readFull(larger.file);
      const { width, height } = frame;
      const made = await this.drawn(frame);
      if (!made) return;
      saveFile(made, style);
      say(strings.full.done(width, height));
    } catch (error) {
      say(strings.full.failed(reason(error)));
    }
  }

  /** The picture, where it has more pixels than are shown of it, or was drawn with fewer than are wanted. */
  private larger(): Opened | null {
    const { picture, viewer } = this;
    const { now } = this.live;
    if (!picture || !now || !this.preferences.get("full")) return null;
    const fine = this.preferences.get("strokes") === "fine" && !now.student.fixed;
    const { width, height } = picture.full;
    return Math.max(width, height) > (fine ? viewer.drawnSide : viewer.shownSide) ? picture : null;
  }

  private wanted(frame: ImageBitmap, strokes: Strokes): Omit<BeginFullRequest, "what"> {
    const { student } = this.live.now!;
    const { mirror, part, apart } = this.live;
    const { behind, stickers, drawnSide } = this.viewer;
    return { student, frame, mirror, part, apart, behind, stickers, side: strokes === "fine" ? null : drawnSide, middle: null };
  }

  private async drawn(frame: ImageBitmap): Promise<Blob | null> {
    const { signal } = (this.work = new AbortController());
    this.label(true);
    const report = workBar("save");
    try {
      this.looking.abort();
      this.lookedAt = "";
      await this.looked;
      const wanted = this.wanted(frame, this.preferences.get("strokes"));
      return await this.engine.drawFull(wanted, this.viewer.look, this.preferences.file, report, signal);
    } finally {
      this.work = null;
      report(null);
      this.label(false);
    }
  }

  /** The middle of the file with either strokes, a pixel of it for one of the screen's. */
  private async look({ file }: Opened, signal: AbortSignal): Promise<void> {
    for (const strokes of STROKES) {
      if (signal.aborted) return;
      const frame = await readFull(file);
      const middle = { width: Math.min(LOOKED_AT.width, frame.width), height: Math.min(LOOKED_AT.height, frame.height) };
      const plain = { part: "everything", apart: null, behind: null, stickers: [] as Sticker[] } as const;
      const wanted = { ...this.wanted(frame, strokes), ...plain, middle };
      const look = { ...this.viewer.look, split: 0 };
      const made = await this.engine.drawFull(wanted, look, this.preferences.file, () => {}, signal);
      if (!made) return;
      const image = $<HTMLImageElement>(`strokes-${strokes}`);
      URL.revokeObjectURL(image.src);
      image.src = URL.createObjectURL(made);
    }
  }

  /** The button's words, while something is drawn. */
  private label(on: boolean): void {
    label(this.button.querySelector("span")!, on ? strings.video.cancel : strings.full.save);
    this.button.querySelector("use")!.setAttribute("href", on ? "#i-cancel" : "#i-save");
    for (const [name, said] of Object.entries(this.named))
      this.button.setAttribute(name, on ? strings.full.cancel : said);
  }
}
