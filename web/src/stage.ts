/** Photo and drawing, one over the other; the divider cuts both, so nothing is drawn twice. */
import { Divider } from "./divider";
import { $ } from "./dom";
import type { Drawn } from "./protocol";

const SHARPEST = 1024; // pixels of the photo's long side on the stage

export class Stage {
  private readonly divider = new Divider();
  private readonly photo = $<HTMLCanvasElement>("photo");
  private readonly drawn = $<HTMLCanvasElement>("drawn");
  private readonly photoContext = this.photo.getContext("2d")!;
  private readonly drawnContext = this.drawn.getContext("2d")!;

  /** Show a drawing beside the very part of the frame it was made from; its rim stays outside. */
  show(drawn: Drawn): void {
    const { rim, pixels } = drawn;
    const [width, height] = [drawn.width - 2 * rim, drawn.height - 2 * rim];
    resize(this.drawn, width, height);
    $("stage").style.setProperty("--shape", String(width / height));
    this.drawnContext.putImageData(new ImageData(pixels, drawn.width, drawn.height), -rim, -rim);
    this.showPhoto(drawn);
  }

  private showPhoto({ frame, crop, mirror }: Drawn): void {
    const scale = Math.min(1, SHARPEST / Math.max(crop.width, crop.height));
    resize(this.photo, Math.round(crop.width * scale), Math.round(crop.height * scale));
    const { width, height } = this.photo;
    const context = this.photoContext;
    context.fillStyle = "white";
    context.fillRect(0, 0, width, height);
    context.setTransform(mirror ? -1 : 1, 0, 0, 1, mirror ? width : 0, 0);
    context.drawImage(frame, crop.left, crop.top, crop.width, crop.height, 0, 0, width, height);
    context.resetTransform();
  }

  /** What the stage shows: photo and drawing as the divider parts them, in the photo's pixels. */
  picture(): HTMLCanvasElement {
    const { width, height } = this.photo.width > this.drawn.width ? this.photo : this.drawn;
    const page = Object.assign(document.createElement("canvas"), { width, height });
    const context = page.getContext("2d")!;
    context.imageSmoothingQuality = "high";
    const cut = Math.round((width * this.divider.at) / 100);
    cutOut(context, this.photo, 0, cut);
    cutOut(context, this.drawn, cut, width);
    if (cut > 0 && cut < width) {
      context.fillStyle = "white";
      context.fillRect(cut - 1, 0, 2, height);
    }
    return page;
  }
}

function cutOut(
  context: CanvasRenderingContext2D,
  source: HTMLCanvasElement,
  from: number,
  to: number,
): void {
  const { width, height } = context.canvas;
  context.save();
  context.beginPath();
  context.rect(from, 0, to - from, height);
  context.clip();
  context.drawImage(source, 0, 0, width, height);
  context.restore();
}

function resize(canvas: HTMLCanvasElement, width: number, height: number): void {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
}
