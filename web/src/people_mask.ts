/**
 * Which pixels show people: MediaPipe's selfie segmentation, beside the student. What is not to be
 * drawn becomes see-through in the result, so that the photo below is seen there. In the worker.
 */
import type { InferenceSession, Tensor } from "onnxruntime-web";
import { toPlanes } from "./planes";
import type { Box, InferRequest, InferResult, Part, Size } from "./protocol";
import type { Runtime } from "./runtime";
import { Smoother } from "./steady";
import { strings } from "./strings";

const SIDE = 256; // pixels: the network knows one size, and learned on pictures squeezed to it
const [INPUT, OUTPUT] = ["photo", "people"]; // as tools/mediapipe_networks.py names them
// The network's answer as opacity: none below, whole above. It is some hundredths where nobody is,
// which would leave a veil there.
const NOBODY = 0.1;
const SOMEBODY = 0.9;

/** RGBA, row by row. */
type Pixels = Pick<InferResult, "pixels" | "width" | "height">;

export type Fade = (picture: Pixels) => void;

export class PeopleMask {
  private readonly input = new Float32Array(3 * SIDE * SIDE);
  private readonly tensor: Tensor;
  private readonly context: OffscreenCanvasRenderingContext2D;
  private readonly smoother = new Smoother();
  private mirror = false; // of the picture before
  private people: Float32Array = new Float32Array(SIDE * SIDE);
  private columns: Float32Array = new Float32Array(0); // of each pixel of a row: see `between`
  private readonly row = new Float32Array(SIDE);

  private constructor(
    runtime: Runtime,
    private readonly session: InferenceSession,
  ) {
    this.tensor = new runtime.ort.Tensor("float32", this.input, [1, 3, SIDE, SIDE]);
    this.context = new OffscreenCanvas(SIDE, SIDE).getContext("2d", { willReadFrequently: true, alpha: false })!;
    this.context.imageSmoothingQuality = "high";
  }

  /** Start a session and try it, on the GPU where the student runs there. Throws where it cannot run. */
  static async open(runtime: Runtime, network: ArrayBuffer): Promise<PeopleMask> {
    if (!runtime.gpu) return PeopleMask.openOn("wasm", runtime, network);
    // The student stays on a GPU that cannot run this network.
    return PeopleMask.openOn("webgpu", runtime, network).catch(() => PeopleMask.openOn("wasm", runtime, network));
  }

  private static async openOn(provider: string, runtime: Runtime, network: ArrayBuffer): Promise<PeopleMask> {
    const options = { executionProviders: [provider], graphOptimizationLevel: "all" } as const;
    const mask = new PeopleMask(runtime, await runtime.ort.InferenceSession.create(network, options));
    await mask.run();
    if (!mask.people.every(Number.isFinite)) throw new Error(strings.network.notFinite);
    return mask;
  }

  /** Make see-through, in a result, what the request leaves as the photo has it. */
  async cut({ part, crop, mirror, rim, steady }: InferRequest, result: InferResult): Promise<InferResult> {
    const { times } = result;
    const start = performance.now();
    this.take(result.frame, crop, mirror);
    const prepared = performance.now();
    await this.run();
    const ran = performance.now();
    if (!steady || mirror !== this.mirror) this.smoother.forget();
    this.mirror = mirror;
    if (steady) this.smoother.apply(this.input, this.people, SIDE, SIDE, steady);
    this.fade(result, rim, this.people, part);
    times.prepare += prepared - start;
    times.run += ran - prepared;
    times.finish += performance.now() - ran;
    return { ...result, part };
  }

  /** What makes a picture see-through likewise, all of it at any size; the frame may go. */
  async fadeOf(frame: ImageBitmap, mirror: boolean, part: Part): Promise<Fade> {
    this.take(frame, { left: 0, top: 0, width: frame.width, height: frame.height }, mirror);
    await this.run();
    const people = this.people.slice();
    return (picture) => this.fade(picture, { width: 0, height: 0 }, people, part);
  }

  private take(frame: ImageBitmap, { left, top, width, height }: Box, mirror: boolean): void {
    const { context } = this;
    context.fillStyle = "white"; // behind what is see-through, as the student sees it
    context.fillRect(0, 0, SIDE, SIDE);
    context.setTransform(mirror ? -1 : 1, 0, 0, 1, mirror ? SIDE : 0, 0);
    context.drawImage(frame, left, top, width, height, 0, 0, SIDE, SIDE);
    context.resetTransform();
    toPlanes(context.getImageData(0, 0, SIDE, SIDE).data, this.input);
  }

  private async run(): Promise<void> {
    const outputs = await this.session.run({ [INPUT]: this.tensor });
    this.people = (await outputs[OUTPUT].getData()) as Float32Array;
  }

  /** Multiply the opacity of RGBA pixels, but for a rim of them, by the mask laid over them. */
  private fade({ pixels, width, height }: Pixels, rim: Size, people: Float32Array, part: Part): void {
    const others = part === "background";
    const [wide, high] = [width - 2 * rim.width, height - 2 * rim.height];
    if (this.columns.length !== 3 * wide) {
      this.columns = new Float32Array(3 * wide);
      for (let x = 0; x < wide; x++) this.columns.set(between(x, wide), 3 * x);
    }
    const { columns, row } = this;
    for (let y = 0; y < high; y++) {
      const [up, down, below] = between(y, high);
      for (let x = 0; x < SIDE; x++) {
        const above = people[SIDE * up + x];
        row[x] = above + below * (people[SIDE * down + x] - above);
      }
      let at = 4 * ((rim.height + y) * width + rim.width) + 3;
      for (let x = 0; x < 3 * wide; x += 3, at += 4) {
        const first = row[columns[x]];
        const share = opacity(first + columns[x + 2] * (row[columns[x + 1]] - first));
        pixels[at] *= others ? 1 - share : share;
      }
    }
  }
}

/** The two pixels of the mask that a pixel lies between, of so many, and the second one's share. */
function between(pixel: number, pixels: number): [number, number, number] {
  const at = Math.min(SIDE - 1, Math.max(0, ((pixel + 0.5) * SIDE) / pixels - 0.5));
  const first = Math.floor(at);
  return [first, Math.min(SIDE - 1, first + 1), at - first];
}

function opacity(people: number): number {
  return Math.min(1, Math.max(0, (people - NOBODY) / (SOMEBODY - NOBODY)));
}
