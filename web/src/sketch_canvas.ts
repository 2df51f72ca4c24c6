/** The paper: pointer or keys to strokes, and the strokes on the screen. */
import { $ } from "./dom";
import { KeyboardPen } from "./keyboard_pen";
import { drawOutline, faceLines } from "./outline";
import { drawMark, Sketch, type Mark, type Stroke } from "./strokes";

const ERASER = 8; // times the pen's width

export class SketchCanvas {
  readonly sketch = new Sketch();
  erasing = false;
  private stroke: Stroke | null = null;
  private readonly paper = $("paper");
  private readonly canvas = $<HTMLCanvasElement>("strokes");
  private readonly outline = $<HTMLCanvasElement>("outline");
  private readonly keys = new KeyboardPen({
    begin: (x, y) => this.begin(x, y),
    extend: (x, y) => this.stroke && this.add(x, y),
    end: () => this.end(),
  });

  /**
   * `changed` is told of every part of a stroke, `ended` of its end. `side` of the paper and `width` of the pen are in
   * the network's pixels; `face`: an example is drawn on it.
   */
  constructor(
    private readonly changed: () => void,
    private readonly ended: () => void,
    public side: number,
    public width: number,
    face: boolean,
  ) {
    const points = face ? faceLines().map((line) => line.map((share) => share * side)) : [];
    this.sketch.marks = points.map((each) => ({ points: each, width, erase: false }));
    this.paper.addEventListener("pointerdown", (event) => this.press(event));
    this.paper.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"])
      this.paper.addEventListener(end, () => this.end());
    new ResizeObserver(() => this.repaint()).observe(this.paper);
  }

  /** Whether a stroke has begun and not ended. */
  get drawing(): boolean {
    return this.stroke !== null;
  }

  /** The sketch as the network sees it: black on white, `side` × `side`. */
  picture(): OffscreenCanvas {
    const lines = new OffscreenCanvas(this.side, this.side);
    const context = lines.getContext("2d")!;
    context.imageSmoothingQuality = "high";
    for (const mark of this.sketch.marks) drawMark(context, mark);
    context.globalCompositeOperation = "destination-over";
    context.fillStyle = "white";
    context.fillRect(0, 0, this.side, this.side);
    return lines;
  }

  /**
   * Undo, redo, clear or paste. A stroke that is being drawn ends: else it would go on on the screen
   * though the sketch holds it no more.
   */
  change(action: (sketch: Sketch) => void): void {
    this.keys.lift();
    this.end();
    action(this.sketch);
    this.repaint();
    this.changed();
  }

  /** Everything anew: after a change, and when the paper's size on the screen changes. */
  repaint(): void {
    const pixels = Math.round(this.paper.clientWidth * devicePixelRatio);
    for (const canvas of [this.canvas, this.outline]) canvas.width = canvas.height = pixels;
    if (!pixels) return;
    drawOutline(this.outline);
    for (const mark of this.sketch.marks) this.render(mark);
  }

  private press(event: PointerEvent): void {
    if (!event.isPrimary || event.button !== 0) return;
    event.preventDefault();
    this.keys.lift();
    this.paper.setPointerCapture(event.pointerId);
    this.begin(...this.place(event));
  }

  /** Browsers bundle pointer events into one a frame; a stroke needs them all. */
  private drag(event: PointerEvent): void {
    if (!this.stroke || !event.isPrimary || !this.paper.hasPointerCapture(event.pointerId)) return;
    const all = event.getCoalescedEvents?.() ?? [];
    this.add(...(all.length ? all : [event]).flatMap((each) => this.place(each)));
  }

  private place({ clientX, clientY }: PointerEvent): [number, number] {
    const box = this.paper.getBoundingClientRect();
    return [(clientX - box.left) / box.width, (clientY - box.top) / box.height];
  }

  private begin(x: number, y: number): void {
    const width = this.width * (this.erasing ? ERASER : 1);
    this.stroke = this.sketch.begin(width, this.erasing);
    this.add(x, y);
  }

  private end(): void {
    this.stroke = null;
    this.ended();
  }

  /** Places x0, y0, x1, y1, … as shares of the paper's side. */
  private add(...places: number[]): void {
    const stroke = this.stroke!;
    const known = stroke.points.length / 2;
    stroke.points.push(...places.map((share) => share * this.side));
    this.render(stroke, known - 1);
    this.changed();
  }

  private render(mark: Mark, from = 0): void {
    const context = this.canvas.getContext("2d")!;
    const scale = this.canvas.width / this.side;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    drawMark(context, mark, from);
  }
}
