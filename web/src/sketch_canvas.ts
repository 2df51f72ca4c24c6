/** The paper: pointer to strokes, and the strokes on the screen. */
import { $ } from "./dom";
import { drawOutline } from "./outline";
import { drawStroke, Sketch, type Stroke } from "./strokes";

const ERASER = 8; // times the pen's width

export class SketchCanvas {
  readonly sketch = new Sketch();
  erasing = false;
  private stroke: Stroke | null = null;
  private readonly paper = $("paper");
  private readonly canvas = $<HTMLCanvasElement>("strokes");
  private readonly outline = $<HTMLCanvasElement>("outline");

  /** `side` of the paper and `width` of the pen are in the network's pixels. */
  constructor(
    private readonly changed: () => void,
    public side: number,
    public width: number,
  ) {
    this.paper.addEventListener("pointerdown", (event) => this.begin(event));
    this.paper.addEventListener("pointermove", (event) => this.extend(event));
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"])
      this.paper.addEventListener(end, () => (this.stroke = null));
    new ResizeObserver(() => this.repaint()).observe(this.paper);
  }

  /** The sketch as the network sees it: black on white, `side` × `side`. */
  picture(): OffscreenCanvas {
    const lines = new OffscreenCanvas(this.side, this.side);
    const context = lines.getContext("2d")!;
    for (const stroke of this.sketch.strokes) drawStroke(context, stroke);
    context.globalCompositeOperation = "destination-over";
    context.fillStyle = "white";
    context.fillRect(0, 0, this.side, this.side);
    return lines;
  }

  /** Everything anew: after undo and clear, and when the paper's size on the screen changes. */
  repaint(): void {
    const pixels = Math.round(this.paper.clientWidth * devicePixelRatio);
    for (const canvas of [this.canvas, this.outline]) canvas.width = canvas.height = pixels;
    if (!pixels) return;
    drawOutline(this.outline);
    for (const stroke of this.sketch.strokes) this.render(stroke);
  }

  private begin(event: PointerEvent): void {
    if (!event.isPrimary || event.button !== 0) return;
    event.preventDefault();
    this.paper.setPointerCapture(event.pointerId);
    const width = this.width * (this.erasing ? ERASER : 1);
    this.stroke = this.sketch.begin(width, this.erasing);
    this.add([event]);
  }

  /** Browsers bundle pointer events into one a frame; a stroke needs them all. */
  private extend(event: PointerEvent): void {
    if (!this.stroke || !event.isPrimary) return;
    const all = event.getCoalescedEvents?.() ?? [];
    this.add(all.length ? all : [event]);
  }

  private add(events: PointerEvent[]): void {
    const stroke = this.stroke!;
    const box = this.paper.getBoundingClientRect();
    const known = stroke.points.length / 2;
    for (const { clientX, clientY } of events) {
      const x = ((clientX - box.left) / box.width) * this.side;
      const y = ((clientY - box.top) / box.height) * this.side;
      stroke.points.push(x, y);
    }
    this.render(stroke, known - 1);
    this.changed();
  }

  private render(stroke: Stroke, from = 0): void {
    const context = this.canvas.getContext("2d")!;
    const scale = this.canvas.width / this.side;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    drawStroke(context, stroke, from);
  }
}
