/** Photo and stylised picture, one over the other; moving the divider only clips them in CSS. */
import { Divider } from "./divider";
import { $ } from "./dom";
import type { InferResult } from "./protocol";

const SHARPEST = 1024; // pixels of the photo's long side on the screen

export class Viewer {
  private readonly divider = new Divider();
  private readonly photo = $<HTMLCanvasElement>("photo");
  private readonly stylised = $<HTMLCanvasElement>("stylised");
  private readonly photoContext = this.photo.getContext("2d")!;
  private readonly stylisedContext = this.stylised.getContext("2d")!;

  /** Show a result beside the very part of the frame it was made from; its rim stays outside. */
  show(result: InferResult): void {
    const { rim, pixels } = result;
    const [width, height] = [result.width - 2 * rim, result.height - 2 * rim];
    resize(this.stylised, width, height);
    $("viewer").style.setProperty("--shape", String(width / height));
    const picture = new ImageData(pixels, result.width, result.height);
    this.stylisedContext.putImageData(picture, -rim, -rim);
    this.showPhoto(result);
  }

  private showPhoto({ frame, crop, mirror }: InferResult): void {
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

  /** Both as the divider parts them on the screen, in the pixels of the larger one. */
  picture(): HTMLCanvasElement {
    const { width, height } = this.photo.width > this.stylised.width ? this.photo : this.stylised;
    const page = Object.assign(document.createElement("canvas"), { width, height });
    const context = page.getContext("2d")!;
    context.imageSmoothingQuality = "high";
    const cut = Math.round((width * this.divider.at) / 100);
    cutOut(context, this.photo, 0, cut);
    cutOut(context, this.stylised, cut, width);
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
