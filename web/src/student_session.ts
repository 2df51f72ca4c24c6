/** One student in ONNX Runtime, at one size; its buffers live as long as it does. In the worker. */
import type { InferenceSession, Tensor } from "onnxruntime-web";
import { toBytes, toPlanes } from "./planes";
import type { Box, InferRequest, InferResult, LastTensors, OpenRequest } from "./protocol";
import type { Runtime } from "./runtime";

export class StudentSession {
  private readonly input: Float32Array<ArrayBuffer>;
  private readonly tensor: Tensor;
  private readonly context: OffscreenCanvasRenderingContext2D;
  private output: Float32Array | null = null;

  private constructor(
    private readonly request: OpenRequest,
    private readonly runtime: Runtime,
    private readonly session: InferenceSession,
  ) {
    const { width, height } = request.size;
    this.input = new Float32Array(3 * width * height);
    this.tensor = new runtime.ort.Tensor("float32", this.input, [1, 3, height, width]);
    const canvas = new OffscreenCanvas(width, height);
    this.context = canvas.getContext("2d", { willReadFrequently: true, alpha: false })!;
    this.context.imageSmoothingQuality = "high";
  }

  /** Start a session and try a black picture: a backend that cannot run it fails here. */
  static async open(
    request: OpenRequest,
    runtime: Runtime,
    network: ArrayBuffer,
  ): Promise<StudentSession> {
    const session = await runtime.ort.InferenceSession.create(network, {
      executionProviders: [runtime.gpu ? "webgpu" : "wasm"],
      graphOptimizationLevel: "all",
      freeDimensionOverrides: request.student.fixed ? {} : { ...request.size },
      // Else ONNX Runtime would quietly leave on the CPU what the GPU cannot do.
      extra: runtime.gpu ? { session: { disable_cpu_ep_fallback: "1" } } : {},
    });
    const student = new StudentSession(request, runtime, session);
    await student.run();
    if (!student.output!.every(Number.isFinite)) throw new Error("its output is not finite");
    return student;
  }

  async infer({ frame, crop, mirror, rim, spare }: InferRequest): Promise<InferResult> {
    const { width, height } = this.request.size;
    const start = performance.now();
    this.take(frame, crop, mirror, rim);
    const prepared = performance.now();
    await this.run();
    const ran = performance.now();
    const bytes = 4 * width * height;
    const pixels = new Uint8ClampedArray(
      spare?.byteLength === bytes ? spare : new ArrayBuffer(bytes),
    );
    toBytes(this.output!, this.request.student.channels, pixels);
    const times = {
      prepare: prepared - start,
      run: ran - prepared,
      finish: performance.now() - ran,
    };
    const { backend } = this.runtime;
    return { frame, crop, mirror, rim, pixels, width, height, times, backend };
  }

  last(): LastTensors | null {
    if (!this.output) return null;
    const { channels } = this.request.student;
    return { ...this.request.size, channels, input: this.input.slice(), output: this.output };
  }

  async close(): Promise<void> {
    await this.session.release();
  }

  private take(frame: ImageBitmap, crop: Box, mirror: boolean, rim: number): void {
    const { width, height } = this.request.size;
    const { context } = this;
    const [w, h] = [width - 2 * rim, height - 2 * rim];
    context.fillStyle = "white"; // behind what is see-through
    context.fillRect(0, 0, width, height);
    context.setTransform(mirror ? -1 : 1, 0, 0, 1, mirror ? width : 0, 0);
    context.drawImage(frame, crop.left, crop.top, crop.width, crop.height, rim, rim, w, h);
    context.resetTransform();
    if (rim) mirrorEdges(context, rim);
    toPlanes(context.getImageData(0, 0, width, height).data, this.input);
  }

  private async run(): Promise<void> {
    const { input, output } = this.request.student;
    const outputs = await this.session.run({ [input]: this.tensor });
    this.output = (await outputs[output].getData()) as Float32Array;
  }
}

/** Fill a canvas's rim with what lies inside of it, left and right first, then over the corners. */
function mirrorEdges(context: OffscreenCanvasRenderingContext2D, rim: number): void {
  const { canvas } = context;
  const { width, height } = canvas;
  for (const [from, edge] of [[rim, rim], [width - 2 * rim, width]]) {
    context.setTransform(-1, 0, 0, 1, edge, 0);
    context.drawImage(canvas, from, 0, rim, height, 0, 0, rim, height);
  }
  for (const [from, edge] of [[rim, rim], [height - 2 * rim, height]]) {
    context.setTransform(1, 0, 0, -1, 0, edge);
    context.drawImage(canvas, 0, from, width, rim, 0, 0, width, rim);
  }
  context.resetTransform();
}
