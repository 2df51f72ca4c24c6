/** What is on the paper, in the network's pixels, so that undo, redo and any scale are exact. */
import type { Box } from "./protocol";

export interface Stroke {
  /** x0, y0, x1, y1, … */
  points: number[];
  width: number;
  erase: boolean;
}

/** A picture that was laid on the paper, a scanned drawing say. */
export interface Pasted extends Box {
  picture: ImageBitmap;
}

export type Mark = Stroke | Pasted;

export class Sketch {
  marks: readonly Mark[] = [];
  private past: (readonly Mark[])[] = [];
  private future: (readonly Mark[])[] = [];

  /** Add an empty stroke, to be filled. */
  begin(width: number, erase: boolean): Stroke {
    const stroke = { points: [], width, erase };
    this.become([...this.marks, stroke]);
    return stroke;
  }

  /** A picture in the place of what was drawn, as large as it goes without cutting. */
  paste(picture: ImageBitmap, side: number): void {
    const scale = side / Math.max(picture.width, picture.height);
    const [width, height] = [picture.width * scale, picture.height * scale];
    const box = { left: (side - width) / 2, top: (side - height) / 2, width, height };
    this.become([{ picture, ...box }]);
  }

  /** Take back the last stroke, picture or clear. */
  undo(): void {
    const before = this.past.pop();
    if (!before) return;
    this.future.push(this.marks);
    this.marks = before;
  }

  /** Bring back what undo took. */
  redo(): void {
    const after = this.future.pop();
    if (!after) return;
    this.past.push(this.marks);
    this.marks = after;
  }

  clear(): void {
    if (this.marks.length) this.become([]);
  }

  /** Fit the paper of another network: what undo and redo bring back, too. */
  rescale(scale: number): void {
    for (const mark of new Set([...this.past, this.marks, ...this.future].flat())) {
      mark.width *= scale;
      if ("points" in mark) mark.points = mark.points.map((value) => value * scale);
      else [mark.left, mark.top, mark.height] = [mark.left, mark.top, mark.height].map((v) => v * scale);
    }
  }

  get undoable(): boolean {
    return this.past.length > 0;
  }

  get redoable(): boolean {
    return this.future.length > 0;
  }

  private become(marks: readonly Mark[]): void {
    this.past.push(this.marks);
    this.future = [];
    this.marks = marks;
  }
}

type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

/** Draw a mark, a stroke from its point number `from` on; a single point is a dot. */
export function drawMark(context: Context, mark: Mark, from = 0): void {
  if ("points" in mark) drawStroke(context, mark, from);
  else context.drawImage(mark.picture, mark.left, mark.top, mark.width, mark.height);
}

function drawStroke(context: Context, { points, width, erase }: Stroke, from: number): void {
  if (points.length < 2) return;
  const start = 2 * Math.max(0, from);
  context.globalCompositeOperation = erase ? "destination-out" : "source-over";
  context.strokeStyle = "black";
  context.lineWidth = width;
  context.lineCap = context.lineJoin = "round";
  context.beginPath();
  context.moveTo(points[start], points[start + 1]);
  for (let i = start + 2; i < points.length; i += 2) context.lineTo(points[i], points[i + 1]);
  // A line of no length is not drawn, not even its round ends.
  if (points.length === start + 2) context.lineTo(points[start] + 0.01, points[start + 1]);
  context.stroke();
  context.globalCompositeOperation = "source-over";
}
