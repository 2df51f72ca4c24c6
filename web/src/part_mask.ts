/**
 * What is not to be drawn becomes see-through in a student's result, so that the photo below is seen
 * there. Which pixels those are is told by a network beside the student. In the worker.
 */
import { FaceFinder } from "./face_finder";
import { Guided } from "./guided";
import { SIDE, square, type MaskSource, type View } from "./mask_source";
import { PeopleFinder } from "./people_finder";
import { drawSeen, lumaOf, toPlanes } from "./planes";
import type { Finder, InferRequest, InferResult, Part, Size } from "./protocol";
import type { Runtime } from "./runtime";
import { Between, Smoother } from "./steady";
import { strings } from "./strings";

const FINE = 1024; // pixels of a side of a still picture's opacity, along the photo's own edges

const SOURCES = { people: PeopleFinder, faces: FaceFinder };

/** RGBA, row by row. */
type Pixels = Pick<InferResult, "pixels" | "width" | "height">;

export type Fade = (picture: Pixels) => void;

export class PartMask {
  private readonly photo = new Float32Array(3 * SIDE * SIDE);
  private readonly context = square(SIDE);
  private readonly smoother = new Smoother();
  private readonly guided = new Guided();
  private mirror = false; // of the picture before
  private between = new Between(SIDE, []);
  private size = "";
  private mask: Float32Array = new Float32Array(0); // of the frame that was looked at last
  private frame: ImageBitmap | null = null;

  private constructor(readonly source: MaskSource) {}

  /** Start a session and try it, on the GPU where the student runs there. Throws where it cannot run. */
  static async open(finder: Finder, runtime: Runtime, network: ArrayBuffer): Promise<PartMask> {
    const openOn = (provider: string) => PartMask.openOn(provider, finder, runtime, network);
    // The student stays on a GPU that cannot run this network.
    return runtime.gpu ? openOn("webgpu").catch(() => openOn("wasm")) : openOn("wasm");
  }

  private static async openOn(provider: string, finder: Finder, runtime: Runtime, network: ArrayBuffer): Promise<PartMask> {
    const options = { executionProviders: [provider], graphOptimizationLevel: "all" } as const;
    const session = await runtime.ort.InferenceSession.create(network, options);
    const source = new SOURCES[finder](runtime, session);
    if (!(await source.runs())) throw new Error(strings.network.notFinite);
    return new PartMask(source);
  }

  /** Make see-through, in a result, what the request leaves as the photo has it. */
  async cut(request: InferRequest, result: InferResult): Promise<InferResult> {
    const { part, rim } = request;
    await this.look({ ...request, frame: result.frame }, result);
    const looked = performance.now();
    this.fade(result, rim, this.mask, part);
    result.times.finish += performance.now() - looked;
    return { ...result, part, found: this.found };
  }

  /**
   * Opacity of what the network finds in a view, squeezed to a square, its edges those of the photo; null where a
   * still picture has none of it.
   */
  async stencil(request: View & { steady: number }, result?: InferResult): Promise<ImageBitmap | null> {
    if (this.frame !== request.frame) await this.look(request, result);
    if (request.still && !this.found) return null;
    const pixels = new Uint8ClampedArray(4 * SIDE * SIDE);
    pixels.forEach((_, at) => (pixels[at] = 255 * this.mask[at >> 2]));
    const [size, rim] = [{ width: SIDE, height: SIDE }, { width: 0, height: 0 }];
    const small = { luma: lumaOf(this.photo), shares: null, pixels, size, rim };
    const side = request.still ? FINE : SIDE;
    const made = this.guided.enlarge(small, request, { width: side, height: side }, null);
    for (let at = 0; at < made.length; at += 4) made[at + 3] = 255 * this.share(made[at] / 255);
    const canvas = new OffscreenCanvas(side, side);
    canvas.getContext("2d")!.putImageData(new ImageData(made, side, side), 0, 0);
    return canvas.transferToImageBitmap();
  }

  /** What makes a still picture see-through likewise, all of it at any size; the frame may go. */
  async fadeOf(view: View, part: Part): Promise<Fade> {
    await this.look({ ...view, steady: 0 });
    const mask = this.mask.slice();
    return (picture) => this.fade(picture, { width: 0, height: 0 }, mask, part);
  }

  private get found(): boolean {
    return this.mask.some((value) => value > this.source.none);
  }

  /** How much of a pixel is drawn, of the mask's value there. */
  private share(value: number): number {
    const { none, whole } = this.source;
    return Math.min(1, Math.max(0, (value - none) / (whole - none)));
  }

  private async look(request: View & { steady: number }, result?: InferResult): Promise<void> {
    const { frame, mirror, steady } = request;
    const start = performance.now();
    drawSeen(this.context, request);
    toPlanes(this.context.getImageData(0, 0, SIDE, SIDE).data, this.photo);
    const prepared = performance.now();
    this.mask = await this.source.find(this.photo, request);
    const ran = performance.now();
    if (!steady || mirror !== this.mirror) this.smoother.forget();
    [this.mirror, this.frame] = [mirror, frame];
    if (steady) this.smoother.apply(this.photo, this.mask, SIDE, SIDE, steady);
    if (!result) return;
    const { times } = result;
    const done = performance.now();
    times.part += done - start;
    times.prepare += prepared - start;
    times.run += ran - prepared;
    times.finish += done - ran;
  }

  /**
   * Multiply the opacity of RGBA pixels by the mask laid over what lies within their rim. The rim gets
   * what is next to it: pixels at the edge are enlarged together with it.
   */
  private fade({ pixels, width, height }: Pixels, rim: Size, mask: Float32Array, part: Part): void {
    const others = part === "background";
    const place = (pixel: number, side: number, rim: number) => {
      const inner = side - 2 * rim;
      return ((Math.max(0, Math.min(inner - 1, pixel - rim)) + 0.5) * SIDE) / inner;
    };
    if (this.size !== `${width} ${rim.width}`) {
      this.size = `${width} ${rim.width}`;
      this.between = new Between(SIDE, Array.from({ length: width }, (_, x) => place(x, width, rim.width)));
    }
    for (let y = 0, at = 3; y < height; y++) {
      const values = this.between.row(mask, place(y, height, rim.height));
      for (let x = 0; x < width; x++, at += 4) {
        const share = this.share(values[x]);
        pixels[at] *= others ? 1 - share : share;
      }
    }
  }
}
