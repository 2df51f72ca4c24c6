/** Two seconds of what is shown, as a GIF that plays there and back. */
import gifWorker from "./gif_worker?worker&url";
import type { GifRequest } from "./gif_worker";
import type { Size } from "./protocol";
import { strings } from "./strings";

const LENGTH = 2000; // ms that are taken; it plays for twice as long
const STEP = 80; // ms between two frames, at least
const TICK = 10; // ms: GIFs count in them
const LARGEST = 320; // pixels of the long side: such a GIF has one or two megabytes

/** Where the code that writes GIFs is, for those who keep the page for offline use. */
export { gifWorker };

export class GifLoop {
  private readonly canvas: HTMLCanvasElement;
  private readonly frames: ArrayBuffer[] = [];
  private readonly times: number[] = [];

  /** Of pictures of this size. */
  constructor({ width, height }: Size) {
    const scale = Math.min(1, LARGEST / Math.max(width, height));
    const side = (pixels: number) => Math.max(1, Math.round(pixels * scale));
    this.canvas = document.createElement("canvas");
    [this.canvas.width, this.canvas.height] = [side(width), side(height)];
    this.canvas.getContext("2d", { willReadFrequently: true });
  }

  /** Seconds that are still to come. */
  get left(): number {
    return Math.max(0, LENGTH - this.length) / 1000;
  }

  private get length(): number {
    return this.times.length ? this.times.at(-1)! - this.times[0] : 0;
  }

  /** One more picture, which `fill` draws, unless it comes too early; says whether it was the last. */
  add(fill: (canvas: HTMLCanvasElement) => void): boolean {
    const now = performance.now();
    const last = this.times.at(-1);
    if (last !== undefined && now - last < STEP) return false;
    fill(this.canvas);
    const { width, height } = this.canvas;
    this.frames.push(this.canvas.getContext("2d")!.getImageData(0, 0, width, height).data.buffer);
    this.times.push(now);
    return this.length >= LENGTH;
  }

  /** The GIF. Throws an Error where the browser could not make it. */
  async encode(): Promise<Blob> {
    const { frames } = this;
    const { width, height } = this.canvas;
    const request: GifRequest = { frames, delays: this.delays(), width, height };
    const worker = new Worker(gifWorker, { type: "module" });
    try {
      const bytes = await new Promise<Uint8Array<ArrayBuffer>>((done, fail) => {
        worker.onmessage = ({ data }) => done(data);
        worker.onerror = () => fail(new Error(strings.loop.failed));
        worker.postMessage(request, frames);
      });
      return new Blob([bytes], { type: "image/gif" });
    } finally {
      worker.terminate();
    }
  }

  /** How long each frame was on the screen, the last one as long as the one before. */
  private delays(): number[] {
    const delays = this.times.slice(1).map((time, at) => time - this.times[at]);
    return [...delays, delays.at(-1) ?? STEP].map((ms) => TICK * Math.round(ms / TICK));
  }
}
