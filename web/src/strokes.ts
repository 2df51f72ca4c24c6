/** Strokes as lists of points in the network's pixels, so that undo and any scale are exact. */
export interface Stroke {
  /** x0, y0, x1, y1, … */
  points: number[];
  width: number;
  erase: boolean;
}

export class Sketch {
  strokes: Stroke[] = [];
  private past: Stroke[][] = [];

  /** Add an empty stroke, to be filled. */
  begin(width: number, erase: boolean): Stroke {
    const stroke = { points: [], width, erase };
    this.past.push(this.strokes);
    this.strokes = [...this.strokes, stroke];
    return stroke;
  }

  /** Take back the last stroke or the last clear. */
  undo(): void {
    this.strokes = this.past.pop() ?? this.strokes;
  }

  clear(): void {
    if (!this.strokes.length) return;
    this.past.push(this.strokes);
    this.strokes = [];
  }

  /** Fit the paper of another network: what undo brings back, too. */
  rescale(scale: number): void {
    for (const stroke of new Set([...this.past, this.strokes].flat())) {
      stroke.points = stroke.points.map((value) => value * scale);
      stroke.width *= scale;
    }
  }

  get undoable(): boolean {
    return this.past.length > 0;
  }
}

type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

/** Draw a stroke from its point number `from` on; a single point is a dot. */
export function drawStroke(context: Context, { points, width, erase }: Stroke, from = 0): void {
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
