/** What comes over a drawn picture, on the page and in the worker: faces, and another background behind people. */
import type { Backdrop, DrawnFace } from "./protocol";

type Context = OffscreenCanvasRenderingContext2D | CanvasRenderingContext2D;

const SMALL = 40; // pixels of the long side of a background that is blurred
const LARGEST = 8; // times that, as it comes and as it is drawn
const FILLED = 6;

/** Put faces into a canvas, where that is opaque, and give them back. */
export function pasteFaces(context: Context, faces: DrawnFace[]): void {
  const { width, height } = context.canvas;
  context.globalCompositeOperation = "source-atop";
  context.imageSmoothingQuality = "high";
  for (const { picture, box } of faces) {
    context.drawImage(picture, box.left * width, box.top * height, box.width * width, box.height * height);
    picture.close();
  }
  context.globalCompositeOperation = "source-over";
}

/**
 * Put another background behind people: theirs blurred, a colour, or nothing. From the column `left` on;
 * `people` covers the canvas, opaque where they are.
 */
export function putBehind(context: Context, people: CanvasImageSource, { kind, colour }: Backdrop, left = 0): void {
  const { canvas } = context;
  const { width, height } = canvas;
  const front = layer(canvas, width, height, people, "destination-in");
  const behind = kind === "blurred" ? blurred(canvas, people) : null;
  context.save();
  context.beginPath();
  context.rect(left, 0, width - left, height);
  context.clip();
  context.clearRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  if (behind) context.drawImage(behind, 0, 0, width, height);
  context.fillStyle = colour;
  if (kind === "colour") context.fillRect(0, 0, width, height);
  context.drawImage(front.canvas, 0, 0);
  context.restore();
}

/** A copy of a picture at some size, where people are, or where they are not. */
function layer(picture: CanvasImageSource, width: number, height: number, people: CanvasImageSource, operation: GlobalCompositeOperation) {
  const context = new OffscreenCanvas(width, height).getContext("2d")!;
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, 0, 0, width, height);
  context.globalCompositeOperation = operation;
  context.drawImage(people, 0, 0, width, height);
  context.globalCompositeOperation = "source-over";
  return context;
}

/** The background alone: people leave nothing of theirs in it. Made small, and larger again in steps that smooth. */
function blurred(canvas: HTMLCanvasElement | OffscreenCanvas, people: CanvasImageSource): OffscreenCanvas {
  const scale = SMALL / Math.max(canvas.width, canvas.height);
  const [width, height] = [canvas.width, canvas.height].map((side) => Math.max(1, Math.round(scale * side)));
  let made = layer(canvas, LARGEST * width, LARGEST * height, people, "destination-out").canvas;
  for (let step = 1; step <= LARGEST; step *= 2) {
    const context = new OffscreenCanvas(step * width, step * height).getContext("2d")!;
    const { canvas: next } = context;
    context.imageSmoothingQuality = "high";
    for (const at of [0, 1, 2, 3]) {
      context.globalAlpha = 1 / (at + 1); // the mean of four, a pixel apart
      context.drawImage(made, 2 * (at % 2) - 2, 2 * (at >> 1) - 2, next.width + 2, next.height + 2);
    }
    for (let times = 0; times < FILLED; times++) context.drawImage(next, 0, 0); // where people end, opaque
    made = next;
  }
  return made;
}
