/** Save: a picture at its own size, with a bar until it is drawn; of what moves, what is shown. */
import { $, caption, label, reason, say } from "./dom";
import type { Engine } from "./engine";
import type { LiveLoop } from "./live_loop";
import { workBar } from "./loading";
import type { Student } from "./manifest";
import type { Preferences } from "./preferences";
import { STROKES, type FileKind, type Size, type Strokes } from "./protocol";
import { PNG, encoded, saveFile } from "./save";
import { LIMIT, LIMIT_TOLD } from "./sizes";
import type { Edit } from "./edit";
import { readFull, savedSize } from "./sources";
import { strings } from "./strings";
import type { Viewer } from "./viewer";

const LOOKED_AT: Size = { width: 256, height: 192 }; // pixels of the file, beside each other by strokes

/** An opened picture's file, its size, and whether parts of it are see-through. */
interface Opened {
  file: Blob;
  full: Size;
  clear: boolean;
  edit: Edit;
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

  /** `title` names the file; `picked`: the user chose a resolution. */
  constructor(
    private readonly engine: Engine,
    private readonly live: LiveLoop,
    private readonly viewer: Viewer,
    private readonly title: () => string,
    private readonly picked: () => boolean,
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
    this.describe();
  }

  /** Say what Save gives, of the picture as it is drawn now. */
  describe(): void {
    const { picture, viewer } = this;
    const student = this.live.now?.student;
    const strokes = student && !student.fixed && this.sideOf("shown") !== null;
    $("strokes-row").hidden = this.both.hidden = !strokes;
    label($("save-gives"), picture && student ? gives(picture, student) : "");
    const now = [student?.file, viewer.drawnSide, this.live.mirror, picture?.full.width, picture?.file.size, JSON.stringify(picture?.edit)].join();
    if (!strokes || !this.both.open || this.work || now === this.lookedAt) return;
    this.lookedAt = now;
    this.looking.abort();
    this.looking = new AbortController();
    this.looked = this.looked.then(() => this.look(picture!, this.looking.signal)).catch(() => {});
  }

  private async save(): Promise<void> {
    const title = this.title();
    const { picture } = this;
    say("");
    try {
      if (!picture || !this.live.now) return saveFile(await encoded(this.viewer.picture(), this.preferences.file), title);
      const made = await this.drawn(picture);
      if (!made) return;
      saveFile(made, title);
      const { width, height } = savedSize(picture.full);
      say(strings.full.done(width, height));
    } catch (error) {
      say(strings.full.failed(reason(error)));
    }
  }

  /**
   * Pixels of the long side that the network draws, to be enlarged; null: the picture's own. Where nothing else was
   * picked, these are those of distill.stylize up to its limit, whatever the screen.
   */
  private sideOf(strokes: Strokes): number | null {
    const { picture, viewer } = this;
    const own = picture ? Math.max(picture.full.width, picture.full.height) : 0;
    const plain = !this.picked() && own <= (this.live.now!.student.told ? LIMIT_TOLD : LIMIT);
    return strokes === "fine" || plain || own <= viewer.drawnSide ? null : viewer.drawnSide;
  }

  private async drawn({ file, edit, clear }: Opened): Promise<Blob | null> {
    const { signal } = (this.work = new AbortController());
    this.label(true);
    const report = workBar("save");
    try {
      this.looking.abort();
      this.lookedAt = "";
      await this.looked;
      const kind: FileKind = clear ? PNG : this.preferences.file;
      const frame = await readFull(file, edit, clear); // takes seconds where it is very large
      const { mirror, part, apart, now } = this.live;
      const { behind, stickers, look } = this.viewer;
      const side = this.sideOf(this.preferences.get("strokes"));
      const wanted = { student: now!.student, frame, mirror, part, apart, behind, stickers, side, clear };
      return await this.engine.drawFull(wanted, kind, signal, look, report);
    } finally {
      this.work = null;
      report(null);
      this.label(false);
    }
  }

  /** The middle of the file with either strokes, a pixel of it for one of the screen's. */
  private async look({ file, edit }: Opened, signal: AbortSignal): Promise<void> {
    for (const strokes of STROKES) {
      if (signal.aborted) return;
      const frame = await readFull(file, edit, false);
      const middle = { width: Math.min(LOOKED_AT.width, frame.width), height: Math.min(LOOKED_AT.height, frame.height) };
      const wanted = { student: this.live.now!.student, frame, mirror: this.live.mirror, side: this.sideOf(strokes), middle };
      const look = { ...this.viewer.look, split: 0 };
      const made = await this.engine.drawFull(wanted, this.preferences.file, signal, look);
      if (!made) return;
      const image = $<HTMLImageElement>(`strokes-${strokes}`);
      URL.revokeObjectURL(image.src);
      image.src = URL.createObjectURL(made);
    }
  }

  /** The button's words, while something is drawn. */
  private label(on: boolean): void {
    caption(this.button, on ? strings.video.cancel : null);
    this.button.querySelector("use")!.setAttribute("href", on ? "#i-cancel" : "#i-save");
    for (const [name, said] of Object.entries(this.named))
      this.button.setAttribute(name, on ? strings.full.cancel : said);
  }
}

/** What Save gives of a picture, in words. */
function gives({ full, clear }: Opened, { name, fixed }: Student): string {
  const { width, height } = savedSize(full);
  const size = fixed && Math.max(width, height) > Math.max(...fixed)
    ? strings.full.givesFixed(name, fixed[1], fixed[0], width, height)
    : strings.full.gives(width, height);
  const less = width < full.width ? strings.full.limited(full.width, full.height) : "";
  return [size, less, clear ? strings.full.clear : ""].filter(Boolean).join(" ");
}
