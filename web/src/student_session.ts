/** One student at one size; its buffers live as long as it does. In the worker. */
import { NetworkSession } from "./network_session";
import { toBytes, toPlanes } from "./planes";
import type { Box, InferRequest, InferResult, LastTensors, OpenRequest, Size } from "./protocol";
import type { Runtime } from "./runtime";
import { Smoother } from "./steady";

export class StudentSession {
  private readonly context: OffscreenCanvasRenderingContext2D;
  private readonly smoother = new Smoother();
  private mirror = false; // of the result before
  private mixed: Float32Array = new Float32Array(0);

  private constructor(
    private readonly request: OpenRequest,
    private readonly runtime: Runtime,
    private readonly network: NetworkSession,
  ) {
    const { width, height } = request.size;
    const canvas = new OffscreenCanvas(width, height);
    this.context = canvas.getContext("2d", { willReadFrequently: true, alpha: false })!;
    this.context.imageSmoothingQuality = "high";
  }

  static async open(
    request: OpenRequest,
    runtime: Runtime,
    network: ArrayBuffer,
  ): Promise<StudentSession> {
    const opened = await NetworkSession.open(request.student, request.size, runtime, network);
    return new StudentSession(request, runtime, opened);
  }

  async infer({ frame, crop, mirror, rim, steady, spare }: InferRequest): Promise<InferResult> {
    const { width, height } = this.request.size;
    const start = performance.now();
    this.take(frame, crop, mirror, rim);
    const prepared = performance.now();
    await this.network.run();
    const ran = performance.now();
    if (!steady || mirror !== this.mirror) this.smoother.forget();
    this.mirror = mirror;
    const shown = steady ? this.steadied(steady) : this.network.output;
    const bytes = 4 * width * height;
    const pixels = new Uint8ClampedArray(
      spare?.byteLength === bytes ? spare : new ArrayBuffer(bytes),
    );
    toBytes(shown, this.request.student.channels, pixels);
    const times = {
      prepare: prepared - start,
      run: ran - prepared,
      finish: performance.now() - ran,
    };
    const { backend } = this.runtime;
    return { frame, crop, mirror, rim, pixels, width, height, times, backend };
  }

  /** The output mixed with what was shown before; what `last` tells stays the network's own. */
  private steadied(steady: number): Float32Array {
    const { width, height } = this.request.size;
    const { input, output } = this.network;
    if (this.mixed.length !== output.length) this.mixed = new Float32Array(output.length);
    this.mixed.set(output);
    this.smoother.apply(input, this.mixed, width, height, steady);
    return this.mixed;
  }

  last(): LastTensors {
    const { channels } = this.request.student;
    const { input, output } = this.network;
    return { ...this.request.size, channels, input: input.slice(), output };
  }

  async close(): Promise<void> {
    await this.network.close();
  }

  private take(frame: ImageBitmap, crop: Box, mirror: boolean, rim: Size): void {
    const { width, height } = this.request.size;
    const { context } = this;
    const [w, h] = [width - 2 * rim.width, height - 2 * rim.height];
    context.fillStyle = "white"; // behind what is see-through
    context.fillRect(0, 0, width, height);
    context.setTransform(mirror ? -1 : 1, 0, 0, 1, mirror ? width : 0, 0);
    context.drawImage(frame, crop.left, crop.top, crop.width, crop.height, rim.width, rim.height, w, h);
    context.resetTransform();
    mirrorEdges(context, rim);
    toPlanes(context.getImageData(0, 0, width, height).data, this.network.input);
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
