/** The sketch view: strokes in, a picture out, some times a second. */
import { ChosenStudent, type Choice } from "./chosen_student";
import { $, label, pressed, reason, say } from "./dom";
import type { Engine } from "./engine";
import type { Manifest, Student } from "./manifest";
import { Meter } from "./meter";
import { pixels } from "./numbers";
import type { Backend } from "./protocol";
import { encoded, saveFile, stamped } from "./save";
import { SketchCanvas } from "./sketch_canvas";
import { strings } from "./strings";

const LINE = 3 / 256; // width of a line, of the side: that of distill.prepare's sketches

export class SketchView {
  readonly meter = new Meter($("sketch-meter"));
  private readonly canvas: SketchCanvas;
  private readonly sticker = $<HTMLCanvasElement>("sticker");
  private readonly pause: number;
  private readonly chosen: ChosenStudent;
  private active = false;
  private changed = false;
  private made = ""; // by which student the sticker was
  private complete = false; // the sticker shows all that is on the paper
  working = false; // something waits for inference, or is in it

  constructor(
    private readonly engine: Engine,
    private readonly onBackend: (backend: Backend) => void,
    show: (choice: Choice) => void,
    private wanted: Student,
    private readonly manifest: Manifest,
  ) {
    this.pause = 1000 / manifest.rate;
    this.chosen = new ChosenStudent(engine, () => this.follow(), show);
    const side = shortSide(wanted);
    this.canvas = new SketchCanvas(() => this.again(), () => this.refresh(), side, this.line(side), !wanted.faceless);
    this.connect();
    this.setWidth(this.line(side));
    this.refresh();
  }

  choose(student: Student): void {
    this.wanted = student;
    this.chosen.choose({ student, side: shortSide(student) });
  }

  /** A picture that the user brought is laid on the paper: the network sees it as a drawing. */
  async openFile(file: File): Promise<void> {
    const picture = await createImageBitmap(file).catch(() => null);
    if (!picture) return say(strings.files.noPicture(file.name || strings.files.unnamed));
    say("");
    this.canvas.change((sketch) => sketch.paste(picture, this.canvas.side));
  }

  /** The first student comes once there is something to draw on. */
  show(active: boolean): void {
    this.active = active;
    if (!active) return;
    if (!this.chosen.now) this.choose(this.wanted);
    this.again();
  }

  private follow(): void {
    const { side } = this.chosen.now!;
    this.canvas.sketch.rescale(side / this.canvas.side);
    this.canvas.side = side;
    this.setWidth(this.line(side));
    this.again();
  }

  private connect(): void {
    $("eraser").addEventListener("click", () => this.toggleEraser());
    $("undo").addEventListener("click", () => this.canvas.change((sketch) => sketch.undo()));
    $("redo").addEventListener("click", () => this.canvas.change((sketch) => sketch.redo()));
    $("clear").addEventListener("click", () => this.canvas.change((sketch) => sketch.clear()));
    $("trace").addEventListener("click", () => this.toggleOutline());
    $("save-sticker").addEventListener("click", () => this.save());
    const width = $<HTMLInputElement>("width");
    width.addEventListener("input", () => this.setWidth(width.valueAsNumber));
    document.addEventListener("keydown", (event) => this.press(event));
  }

  /** Ctrl+Z, and Ctrl+Shift+Z or Ctrl+Y; Caps Lock makes capitals of them. */
  private press(event: KeyboardEvent): void {
    if (!this.active || event.altKey || !(event.ctrlKey || event.metaKey)) return;
    const key = event.key.toLowerCase();
    if (key !== "z" && key !== "y") return;
    event.preventDefault();
    const redo = key === "y" || event.shiftKey;
    this.canvas.change((sketch) => (redo ? sketch.redo() : sketch.undo()));
  }

  private toggleEraser(): void {
    this.canvas.erasing = !this.canvas.erasing;
    pressed($("eraser"), this.canvas.erasing);
  }

  /** Width of the pen where the network has that side. */
  private line(side: number): number {
    return this.manifest.line ?? LINE * side;
  }

  private setWidth(width: number): void {
    this.canvas.width = width;
    $<HTMLInputElement>("width").valueAsNumber = width;
    label($("width-value"), pixels(width));
  }

  private toggleOutline(): void {
    const outline = $("outline");
    outline.hidden = !outline.hidden;
    pressed($("trace"), !outline.hidden);
  }

  private save(): void {
    const title = `${stamped("sketch")}-${this.made}`;
    encoded(this.sticker).then(
      (blob) => saveFile(blob, title),
      (error) => say(reason(error)),
    );
  }

  private again(): void {
    this.changed = true;
    this.complete = false;
    this.refresh();
    if (!this.working) void this.work();
  }

  private refresh(): void {
    const { marks, undoable, redoable } = this.canvas.sketch;
    const empty = marks.length === 0;
    $("trace").hidden = Boolean(this.wanted.faceless);
    if (this.wanted.faceless && !$("outline").hidden) this.toggleOutline();
    $<HTMLButtonElement>("undo").disabled = !undoable;
    $<HTMLButtonElement>("redo").disabled = !redoable;
    $<HTMLButtonElement>("clear").disabled = empty;
    const unfinished = empty || !this.complete || this.canvas.drawing;
    $<HTMLButtonElement>("save-sticker").disabled = unfinished;
    const wear = $<HTMLButtonElement>("wear-sticker");
    wear.hidden = this.wanted.channels !== 4 || !this.manifest.students.some(({ kind }) => kind === "photo");
    wear.disabled = unfinished;
    this.sticker.parentElement!.classList.toggle("clear", this.wanted.channels === 4);
    $("hint").hidden = !empty;
    this.sticker.hidden = empty;
  }

  /** One picture at a time, at most `rate` a second; the last strokes always get theirs. */
  private async work(): Promise<void> {
    this.working = true;
    while (this.active && this.changed) {
      this.changed = false;
      const next = performance.now() + this.pause;
      try {
        const choice = this.chosen.now;
        if (choice && this.canvas.sketch.marks.length) await this.infer(choice);
      } catch (error) {
        if (this.chosen.failed(error)) this.follow();
      }
      const rest = Math.max(0, next - performance.now());
      await new Promise((done) => setTimeout(done, rest));
    }
    this.working = false;
  }

  private async infer(choice: Choice): Promise<void> {
    const { student, side } = choice;
    const size = { width: side, height: side };
    this.onBackend(await this.engine.open(student, size));
    if (choice !== this.chosen.now) return; // the paper has another size by now
    const frame = await createImageBitmap(this.canvas.picture());
    const result = await this.engine.infer({ frame, crop: { left: 0, top: 0, ...size } });
    this.onBackend(result.backend);
    result.frame.close();
    if (this.sticker.width !== side) this.sticker.width = this.sticker.height = side;
    const picture = new ImageData(result.pixels, side, side);
    this.sticker.getContext("2d")!.putImageData(picture, 0, 0);
    this.engine.reuse(result.pixels);
    this.meter.add(result.times, true);
    this.chosen.ran(choice);
    this.made = student.name;
    this.complete = !this.changed;
    this.refresh();
  }
}

function shortSide(student: Student): number {
  return student.fixed ? Math.min(...student.fixed) : student.side;
}
