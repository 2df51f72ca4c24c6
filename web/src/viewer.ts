/** Photo and stylised picture, one over the other; moving the divider only clips them in CSS. */
import { pasteFaces, putBehind } from "./backdrop";
import { Divider } from "./divider";
import { $, type Root } from "./dom";
import { MOST, screenSide } from "./fit";
import { drawSeen } from "./planes";
import type { Backdrop, Box, FullLook, InferResult, Size, Sticker } from "./protocol";
import { dress, follow, wearers, type Wearer } from "./stickers";

const LEAST = 256; // pixels that are drawn for, where fewer or none are seen
const WHOLE_PAGE = import.meta.env.MODE !== "element"; // which leaves faces and backgrounds out, to stay small
const GROWN = 1.1;
const SAME = 0.02; // of the logarithm of a shape: what evening a film's sides may do to it

export class Viewer {
  private readonly frame: HTMLElement;
  private readonly divider: Divider;
  private readonly photo: HTMLCanvasElement;
  private readonly stylised: HTMLCanvasElement;
  private readonly stylisedContext: CanvasRenderingContext2D;

  private share = 1;
  /** Whether what leaves the page has the photo beside it, as far as the divider. */
  beside = false;
  private source = 0; // pixels of the long side of what is shown, as it came
  private network: Size = { width: 0, height: 0 }; // what it drew of it, before it was enlarged
  private drawnFor = 0; // pixels of the screen's long side, as it was then
  private partial = false; // what is not drawn is see-through
  private people: ImageBitmap | null = null; // their opacity, where something else is put behind them
  private readonly drawing = document.createElement("canvas"); // the stylised picture without that
  private readonly worn: HTMLCanvasElement | null; // over it: what faces wear
  private wearers: Wearer[] = [];
  /** What those are to wear. */
  stickers: Sticker[] = [];
  /** What stands behind people, where they were told from it; null: what they stood before. */
  behind: Backdrop | null = null;

  /** How many times as large as its frame the picture is seen. */
  magnified = 1;

  /** Whether there is a stylised picture, and so something to save. */
  drawn = false;
  /** Called with every stylised picture that is shown. */
  onFrame: (() => void) | null = null;

  constructor(private readonly root: Root = document) {
    this.frame = $("viewer", root);
    this.divider = new Divider(root);
    this.photo = $<HTMLCanvasElement>("photo", root);
    this.stylised = $<HTMLCanvasElement>("stylised", root);
    this.worn = root.getElementById("worn") as HTMLCanvasElement | null;
    this.stylisedContext = this.stylised.getContext("2d")!;
  }

  /** The photo alone, while the network is on its way. */
  preview(frame: ImageBitmap, crop: Box, mirror: boolean): void {
    this.frame.style.setProperty("--shape", String(crop.width / crop.height));
    this.frame.classList.add("alone");
    this.showPhoto({ frame, crop, mirror });
  }

  /**
   * Show a result beside the very part of the frame it was made from; its rim stays outside. `fresh`: it has
   * nothing to do with the one before.
   */
  show(result: InferResult, fresh: boolean): void {
    const { rim, pixels, picture } = result;
    const [width, height] = [result.width - 2 * rim.width, result.height - 2 * rim.height];
    resize(this.stylised, picture?.width ?? width, picture?.height ?? height);
    this.network = result.drawn;
    this.frame.style.setProperty("--shape", String(result.crop.width / result.crop.height));
    this.drawnFor = this.seenSide;
    if (picture) {
      this.stylisedContext.clearRect(0, 0, picture.width, picture.height);
      this.stylisedContext.drawImage(picture, 0, 0);
      picture.close();
    } else {
      this.stylisedContext.putImageData(new ImageData(pixels, result.width, result.height), -rim.width, -rim.height);
    }
    if (WHOLE_PAGE) pasteFaces(this.stylisedContext, result.faces ?? []);
    this.partial = result.part !== undefined;
    this.showPhoto(result);
    this.people?.close();
    this.people = result.people ?? null;
    resize(this.drawing, this.stylised.width, this.stylised.height);
    if (this.people) replace(this.drawing.getContext("2d")!, this.stylised);
    this.blend();
    this.dress(result, fresh);
    this.frame.classList.remove("alone");
    if (!this.drawn) this.begun();
    this.onFrame?.();
  }

  /** Put on their faces what people wear, on a canvas of its own: it is as strong as ever. */
  private dress({ marks, crop }: InferResult, fresh: boolean): void {
    const { worn, stickers } = this;
    if (!WHOLE_PAGE || !worn) return;
    const { width, height } = this.stylised;
    const shape = crop.width / crop.height;
    const found = wearers(marks ?? [], shape);
    this.wearers = fresh ? found : follow(this.wearers, found, shape);
    Object.assign(worn, this.wearers.length && stickers.length ? { width, height } : { width: 1, height: 1 }); // cleared, too
    dress(worn.getContext("2d")!, stickers, this.wearers);
  }

  private begun(): void {
    for (const name of ["save", "share", "copy", "record", "loop", "film"])
      this.root.getElementById(name)?.removeAttribute("disabled");
    this.drawn = true;
  }

  private showPhoto(seen: Pick<InferResult, "frame" | "crop" | "mirror">): void {
    const { crop } = seen;
    this.source = Math.max(crop.width, crop.height);
    const scale = Math.min(1, MOST / this.source);
    resize(this.photo, Math.round(crop.width * scale), Math.round(crop.height * scale));
    drawSeen(this.photo.getContext("2d")!, seen);
  }

  /** How much of the stylised picture is seen over the photo, 0 to 1. */
  set strength(share: number) {
    this.share = share;
    this.frame.style.setProperty("--strength", String(share));
    this.blend();
  }

  set backdrop(backdrop: Backdrop | null) {
    this.behind = backdrop;
    this.frame.classList.toggle("clear", this.clear);
    this.blend();
  }

  /** Whether what is shown is see-through where nobody is. */
  get clear(): boolean {
    return this.behind?.kind === "clear";
  }

  /** Whether the photo lies below the stylised picture, too; another background is put behind both. */
  private blend(): void {
    const { stylisedContext: context, people, behind, drawing, share } = this;
    this.frame.classList.toggle("blended", this.blended);
    if (!WHOLE_PAGE || !people) return;
    replace(context, share < 1 || this.partial ? this.photo : drawing);
    context.globalAlpha = share;
    context.drawImage(drawing, 0, 0);
    context.globalAlpha = 1;
    if (behind) putBehind(context, people, behind);
  }

  private get blended(): boolean {
    return !this.people && (this.share < 1 || this.partial);
  }

  /** Whether to show the photo beside the output, with a divider. */
  set compare(on: boolean) {
    this.frame.classList.toggle("single", !on);
  }

  /** Width by height of what leaves the page: the photo's own, whatever the network drew. */
  get size(): Size {
    const { width, height } = this.photo;
    return { width, height };
  }

  /** Pixels of the long side that the network drew. */
  get drawnSide(): number {
    return Math.max(this.network.width, this.network.height);
  }

  /** The side at which a network fills the screen's own pixels, or as many as the photo has. */
  get screenSide(): number {
    return screenSide(this.seenSide, this.source);
  }

  /** The screen's pixels that a crop fills. */
  shown({ width, height }: Size): Size {
    const scale = Math.min(MOST, this.seenSide) / Math.max(width, height);
    const side = (pixels: number) => Math.max(1, Math.round(scale * pixels));
    return { width: side(width), height: side(height) };
  }

  /** Whether the screen has come to show the picture clearly larger than it was drawn for. */
  get outgrown(): boolean {
    return this.drawn && this.seenSide > GROWN * this.drawnFor;
  }

  /** Pixels of the screen; at least those of a small picture, as what is hidden has none. */
  private get seenSide(): number {
    const { clientWidth, clientHeight } = this.frame;
    return Math.max(LEAST, devicePixelRatio * this.magnified * Math.max(clientWidth, clientHeight));
  }

  /** How the picture is looked at. */
  get look(): FullLook {
    return { split: this.beside ? this.divider.at / 100 : 0, strength: this.share };
  }

  /** What is shown, as a picture of its own; perhaps without the photo beside it. */
  picture(beside = this.beside): HTMLCanvasElement {
    const page = Object.assign(document.createElement("canvas"), this.size);
    this.paint(page.getContext("2d")!, { left: 0, top: 0, ...this.size }, beside);
    return page;
  }

  /** Draw what is shown over a whole canvas; where that is of another shape, between bars. */
  fill(canvas: HTMLCanvasElement): void {
    const { width, height } = canvas;
    const shape = this.size.width / this.size.height;
    const context = canvas.getContext("2d")!;
    const box = { left: 0, top: 0, width, height };
    if (Math.abs(Math.log((shape * height) / width)) > SAME) {
      context.fillStyle = "black";
      context.fillRect(0, 0, width, height);
      box.width = Math.min(width, height * shape);
      box.height = box.width / shape;
      [box.left, box.top] = [(width - box.width) / 2, (height - box.height) / 2];
    }
    this.paint(context, box);
  }

  /** Draw what is shown, as divider and strength have it on the screen, into a box. */
  paint(context: CanvasRenderingContext2D, { left, top, width, height }: Box, beside = this.beside): void {
    const cut = beside ? Math.round((width * this.divider.at) / 100) : 0;
    context.save();
    context.translate(left, top);
    context.imageSmoothingQuality = "high";
    context.beginPath();
    context.rect(0, 0, width, height);
    context.clip();
    if (cut > 0 || this.blended) context.drawImage(this.photo, 0, 0, width, height);
    else context.clearRect(0, 0, width, height);
    context.beginPath();
    context.rect(cut, 0, width - cut, height);
    context.clip();
    if (!this.blended) context.clearRect(cut, 0, width - cut, height);
    context.globalAlpha = this.people ? 1 : this.share;
    context.drawImage(this.stylised, 0, 0, width, height);
    context.globalAlpha = 1;
    if (this.worn) context.drawImage(this.worn, 0, 0, width, height);
    context.restore();
    if (cut > 0 && cut < width) {
      context.fillStyle = "white";
      context.fillRect(left + cut - 1, top, 2, height);
    }
  }
}

/** A picture in the place of what a canvas has. */
function replace(context: CanvasRenderingContext2D, picture: HTMLCanvasElement): void {
  context.globalCompositeOperation = "copy";
  context.drawImage(picture, 0, 0, context.canvas.width, context.canvas.height);
  context.globalCompositeOperation = "source-over";
}

function resize(canvas: HTMLCanvasElement, width: number, height: number): void {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
}
