/** One student at one size; its buffers live as long as it does. In the worker. */
import { PlaneColours } from "./colours";
import { coloursSize, whole } from "./fit";
import { NetworkSession } from "./network_session";
import { splitAtSummary } from "./onnx_file";
import { drawSeen, lumaOf, toBytes, toPlanes } from "./planes";
import type { Box, InferRequest, InferResult, LastTensors, OpenRequest, Size } from "./protocol";
import type { Runtime } from "./runtime";
import { Smoother, type Shares } from "./steady";
import { Teller } from "./teller";

// Frames of what moves from one look at the whole picture to the next. A look takes as long as 60 %
// of a frame of 256 × 256; what it tells hardly changes meanwhile.
export const LOOK = 4;

const RUNS = 5; // that are timed, as far as they take
const TRIED = 500; // ms

type Drawing = Pick<InferRequest, "frame" | "crop" | "mirror" | "still" | "rim" | "steady" | "spare">;

export class StudentSession {
  private readonly smoother = new Smoother();
  private mirror = false; // of the result before
  private changed: Float32Array = new Float32Array(0); // an output that is not shown as it is
  private colours: PlaneColours | null = null;
  private frames = 0; // since the teller looked
  private steadied = false; // the last result

  /** `small` gives a large output its colours; `teller` tells a network of the whole picture. */
  private constructor(
    private readonly request: OpenRequest,
    readonly runtime: Runtime,
    private readonly large: SizedNetwork,
    private readonly small: SizedNetwork | null,
    readonly teller: Teller | null,
  ) {}

  /** `tried`: this student has run in this runtime, at whatever size. */
  static async open(request: OpenRequest, runtime: Runtime, network: ArrayBuffer, tried = false): Promise<StudentSession> {
    const { student, size } = request;
    const parts = splitAtSummary(network);
    const teller = parts && (await Teller.open(parts, runtime));
    const at = async (size: Size) => {
      const drawn = parts?.drawn ?? network;
      return new SizedNetwork(await NetworkSession.open(student, size, runtime, drawn, teller?.summary, tried));
    };
    let large: SizedNetwork | null = null;
    try {
      large = await at(size);
      const smaller = coloursSize(size, student);
      return new StudentSession(request, runtime, large, smaller && (await at(smaller)), teller);
    } catch (error) {
      await teller?.close();
      await large?.session.close();
      throw error;
    }
  }

  /** The network, and whether it draws planes of three colours as they are. */
  get drawing(): NetworkSession {
    return this.large.session;
  }
  get plain(): boolean {
    return this.drawing.plain && !this.small && this.request.student.channels === 3;
  }

  /** What comes next has nothing to do with what came before. */
  forget(): void {
    this.smoother.forget();
    this.teller?.forget();
  }

  async infer({ frame, crop, mirror, still, rim, steady, spare }: Drawing): Promise<InferResult> {
    const { large, small } = this;
    const { width, height } = this.request.size;
    const start = performance.now();
    large.take(frame, crop, mirror, rim, still);
    const smallRim = small && whole(crop, small.session.size).rim;
    if (smallRim && still) small.take(frame, crop, mirror, smallRim, still);
    else if (smallRim) small.takeHalf(large, rim, smallRim);
    if (!steady || mirror !== this.mirror) this.forget();
    const prepared = performance.now();
    const looked = await this.look(rim, still || mirror !== this.mirror, steady);
    await large.session.run();
    await small?.session.run();
    const ran = performance.now();
    const { input } = large.session;
    const shown = small || steady ? this.copied() : large.session.output;
    if (smallRim) {
      const [own, other] = [{ width, height, rim }, { ...small.session.size, rim: smallRim }];
      if (!this.colours?.fits(own, other)) this.colours = new PlaneColours(own, other);
      this.colours.apply(shown, small.session.output);
    }
    this.mirror = mirror;
    this.steadied = steady > 0;
    if (steady) this.smoother.apply(input, shown, width, height, steady);
    const bytes = 4 * width * height;
    const pixels = new Uint8ClampedArray(
      spare?.byteLength === bytes ? spare : new ArrayBuffer(bytes),
    );
    toBytes(shown, this.request.student.channels, pixels);
    const times = {
      prepare: prepared - start,
      run: ran - prepared,
      finish: performance.now() - ran,
      part: looked,
    };
    const { backend } = this.runtime;
    const drawn = { width: width - 2 * rim.width, height: height - 2 * rim.height };
    return { frame, crop, mirror, rim, pixels, width, height, drawn, times, backend };
  }

  /** The luma of what the network saw last, in [0, 1], and what was mixed with the frame before: nothing, or both. */
  guide(): { luma: Float32Array; shares: Shares | null } {
    const { input } = this.large.session;
    if (this.steadied) return { luma: this.changed.subarray(-input.length / 3), shares: this.smoother.mixed };
    return { luma: lumaOf(input), shares: null };
  }

  /** Milliseconds that it took to look at the whole picture, where it is time for that. */
  private async look(rim: Size, now: boolean, steady: number): Promise<number> {
    const { teller, large } = this;
    if (!teller || (!now && this.frames++ % LOOK)) return 0;
    const start = performance.now();
    await teller.look(...large.shown(rim), steady);
    return performance.now() - start;
  }

  /** The output, to be changed, and the input's luma; what `last` tells stays the network's own. */
  private copied(): Float32Array {
    const { input, output } = this.large.session;
    const length = output.length + input.length / 3;
    if (this.changed.length !== length) this.changed = new Float32Array(length);
    this.changed.set(output);
    lumaOf(input, this.changed.subarray(output.length));
    return this.changed;
  }

  /** Milliseconds of the network alone: the least of some runs. */
  async time(): Promise<number> {
    const times: number[] = [];
    for (const begun = performance.now(); times.length < RUNS && performance.now() - begun < TRIED; ) {
      const start = performance.now();
      await this.large.session.run();
      times.push(performance.now() - start);
    }
    return Math.min(...times);
  }

  last(): LastTensors {
    const { channels } = this.request.student;
    const { input, output } = this.large.session;
    return { ...this.request.size, channels: channels === 4 ? 4 : 3, input: input.slice(), output };
  }

  async close(): Promise<void> {
    await this.large.session.close();
    await this.small?.session.close();
    await this.teller?.close();
  }
}

/** A network and the canvas that its input is drawn on. */
class SizedNetwork {
  private readonly context: OffscreenCanvasRenderingContext2D;

  constructor(readonly session: NetworkSession) {
    const { width, height } = session.size;
    const canvas = new OffscreenCanvas(width, height);
    this.context = canvas.getContext("2d", { willReadFrequently: true, alpha: false })!;
  }

  /** `still`: there is time to enlarge a picture smoothly, which takes twice as long. */
  take(frame: ImageBitmap, crop: Box, mirror: boolean, rim: Size, still: boolean): void {
    const { width, height } = this.session.size;
    const enlarged = width - 2 * rim.width >= crop.width && height - 2 * rim.height >= crop.height;
    this.draw(frame, crop, mirror, rim, enlarged && !still ? "low" : "high");
  }

  /** What a network of up to some twice the size has taken: wide colours are all that is wanted of it. */
  takeHalf(large: SizedNetwork, from: Size, rim: Size): void {
    const { width, height } = large.session.size;
    const shown = { left: from.width, top: from.height, width: width - 2 * from.width, height: height - 2 * from.height };
    this.draw(large.context.canvas, shown, false, rim, "low");
  }

  /** RGBA bytes of what was taken, but for its rim, and their size. */
  shown(rim: Size): [Uint8ClampedArray<ArrayBuffer>, Size] {
    const { width, height } = this.session.size;
    const size = { width: width - 2 * rim.width, height: height - 2 * rim.height };
    return [this.context.getImageData(rim.width, rim.height, size.width, size.height).data, size];
  }

  private draw(frame: CanvasImageSource, crop: Box, mirror: boolean, rim: Size, quality: ImageSmoothingQuality): void {
    const { width, height } = this.session.size;
    const { context } = this;
    context.imageSmoothingQuality = quality;
    const inner = { left: rim.width, top: rim.height, width: width - 2 * rim.width, height: height - 2 * rim.height };
    drawSeen(context, { frame, crop, mirror }, inner);
    mirrorEdges(context, rim);
    toPlanes(context.getImageData(0, 0, width, height).data, this.session.input);
  }
}

/** Fill a canvas's rim with what lies inside of it, left and right first, then over the corners. */
function mirrorEdges(context: OffscreenCanvasRenderingContext2D, rim: Size): void {
  const { canvas } = context;
  const { width, height } = canvas;
  // What lies inside may be thinner than the rim: each step mirrors as much as is there by then.
  for (let left = rim.width, right = width - rim.width; left > 0 && right > left; ) {
    const step = Math.min(left, right - left);
    context.setTransform(-1, 0, 0, 1, 2 * left, 0);
    context.drawImage(canvas, left, 0, step, height, left, 0, step, height);
    context.setTransform(-1, 0, 0, 1, 2 * right, 0);
    context.drawImage(canvas, right - step, 0, step, height, right - step, 0, step, height);
    [left, right] = [left - step, right + step];
  }
  for (let top = rim.height, bottom = height - rim.height; top > 0 && bottom > top; ) {
    const step = Math.min(top, bottom - top);
    context.setTransform(1, 0, 0, -1, 0, 2 * top);
    context.drawImage(canvas, 0, top, width, step, 0, top, width, step);
    context.setTransform(1, 0, 0, -1, 0, 2 * bottom);
    context.drawImage(canvas, 0, bottom - step, width, step, 0, bottom - step, width, step);
    [top, bottom] = [top - step, bottom + step];
  }
  context.resetTransform();
}
