/** The sketch view: strokes in, a picture out, some times a second. */
import { $, label, pressed, reason, say } from "./dom";
import type { Engine } from "./engine";
import type { Manifest, Student } from "./manifest";
import { Meter } from "./meter";
import type { Backend } from "./protocol";
import { savePng } from "./save";
import { SketchCanvas } from "./sketch_canvas";

export class SketchView {
  readonly meter = new Meter($("sketch-meter"));
  private readonly canvas: SketchCanvas;
  private readonly sticker = $<HTMLCanvasElement>("sticker");
  private readonly pause: number;
  private active = false;
  private changed = false;
  working = false; // something waits for inference, or is in it

  constructor(
    private readonly engine: Engine,
    private readonly onBackend: (backend: Backend) => void,
    private student: Student,
    manifest: Manifest,
  ) {
    this.pause = 1000 / manifest.rate;
    this.canvas = new SketchCanvas(() => this.again(), shortSide(student), manifest.line);
    this.connect();
    this.setWidth(manifest.line);
    this.refresh();
  }

  choose(student: Student): void {
    this.canvas.sketch.rescale(shortSide(student) / this.canvas.side);
    [this.student, this.canvas.side] = [student, shortSide(student)];
    this.again();
  }

  show(active: boolean): void {
    this.active = active;
    if (active) this.again();
  }

  private connect(): void {
    $("pen").addEventListener("click", () => this.setErasing(false));
    $("eraser").addEventListener("click", () => this.setErasing(true));
    $("undo").addEventListener("click", () => this.undo());
    $("clear").addEventListener("click", () => this.change(() => this.canvas.sketch.clear()));
    $("trace").addEventListener("click", () => this.toggleOutline());
    $("save-sticker").addEventListener("click", () => this.save());
    const width = $<HTMLInputElement>("width");
    width.addEventListener("input", () => this.setWidth(width.valueAsNumber));
    document.addEventListener("keydown", (event) => {
      if (!this.active || event.key !== "z" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.undo();
    });
  }

  private undo(): void {
    this.change(() => this.canvas.sketch.undo());
  }

  private change(action: () => void): void {
    action();
    this.canvas.repaint();
    this.again();
  }

  private setErasing(on: boolean): void {
    this.canvas.erasing = on;
    pressed($("eraser"), on);
    pressed($("pen"), !on);
  }

  private setWidth(width: number): void {
    this.canvas.width = width;
    $<HTMLInputElement>("width").valueAsNumber = width;
    label($("width-value"), `${width} px`);
  }

  private toggleOutline(): void {
    const outline = $("outline");
    outline.hidden = !outline.hidden;
    pressed($("trace"), !outline.hidden);
  }

  private save(): void {
    savePng(this.sticker, this.student.name).catch((error) => say(reason(error)));
  }

  private again(): void {
    this.changed = true;
    this.refresh();
    if (!this.working) void this.work();
  }

  private refresh(): void {
    const { strokes, undoable } = this.canvas.sketch;
    const empty = strokes.length === 0;
    $<HTMLButtonElement>("undo").disabled = !undoable;
    for (const id of ["clear", "save-sticker"]) $<HTMLButtonElement>(id).disabled = empty;
    $("hint").hidden = !empty;
    this.sticker.hidden = empty;
    label($("sketch-caption"), this.student.name);
  }

  /** One picture at a time, at most `rate` a second; the last strokes always get theirs. */
  private async work(): Promise<void> {
    this.working = true;
    while (this.active && this.changed) {
      this.changed = false;
      const next = performance.now() + this.pause;
      try {
        if (this.canvas.sketch.strokes.length) await this.infer();
      } catch (error) {
        say(`${this.student.name} cannot run: ${reason(error)}`);
      }
      const rest = Math.max(0, next - performance.now());
      await new Promise((done) => setTimeout(done, rest));
    }
    this.working = false;
  }

  private async infer(): Promise<void> {
    const side = this.canvas.side;
    const size = { width: side, height: side };
    this.onBackend(await this.engine.open(this.student, size));
    const frame = await createImageBitmap(this.canvas.picture());
    const result = await this.engine.infer(frame, { left: 0, top: 0, ...size });
    this.onBackend(result.backend);
    result.frame.close();
    if (this.sticker.width !== side) this.sticker.width = this.sticker.height = side;
    const picture = new ImageData(result.pixels, side, side);
    this.sticker.getContext("2d")!.putImageData(picture, 0, 0);
    this.engine.reuse(result.pixels);
    this.meter.add(result.times, true);
  }
}

function shortSide(student: Student): number {
  return student.fixed ? Math.min(...student.fixed) : student.side;
}
