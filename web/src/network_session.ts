/** A student's network in ONNX Runtime, at one size. In the worker. */
import type { InferenceSession, Tensor } from "onnxruntime-web";
import { ours, toOurs, toTheirs, type Convention } from "./conventions";
import type { Student } from "./manifest";
import { SUMMARY } from "./onnx_file";
import type { Size } from "./protocol";
import type { Runtime } from "./runtime";
import { strings } from "./strings";

export type Network = Pick<Student, "input" | "output" | "fixed" | "convention"> & { channels?: Student["channels"] };

export class NetworkSession {
  /** Planes R, G, B in [0, 1] of the picture, to be written before each `run`. */
  readonly input: Float32Array<ArrayBuffer>;
  /** The last output's planes, of three colours and perhaps alpha; a student's grey stands for all three. */
  output: Float32Array = new Float32Array(0);
  private readonly tensor: Tensor;
  private readonly theirs: { convention: Convention; fed: Float32Array<ArrayBuffer>; made: Float32Array<ArrayBuffer> } | null = null;

  private constructor(
    private readonly student: Network,
    readonly size: Size,
    private readonly runtime: Runtime,
    private readonly session: InferenceSession,
    private readonly told: Record<string, Tensor>,
  ) {
    const { width, height } = size;
    this.input = new Float32Array(3 * width * height);
    const { convention } = student;
    if (import.meta.env.MODE !== "element" && convention && !ours(convention))
      this.theirs = { convention, fed: new Float32Array(this.input.length), made: new Float32Array(0) };
    const dims = convention?.layout === "nhwc" ? [1, height, width, 3] : [1, 3, height, width];
    this.tensor = new runtime.ort.Tensor("float32", this.theirs?.fed ?? this.input, dims);
  }

  /**
   * Start a session and try a black picture: a backend that cannot run it fails here, unless that was
   * `tried` before, as a large picture takes seconds. A network with statistics of the whole picture gets what
   * `summary` holds at every run.
   */
  static async open(
    student: Network,
    size: Size,
    runtime: Runtime,
    network: ArrayBuffer,
    summary: Float32Array | null = null,
    tried = false,
  ): Promise<NetworkSession> {
    const session = await runtime.ort.InferenceSession.create(network, {
      executionProviders: [runtime.gpu ? "webgpu" : "wasm"],
      graphOptimizationLevel: "all",
      freeDimensionOverrides: student.fixed ? {} : { ...size },
      preferredOutputLocation: runtime.gpu ? "gpu-buffer" : "cpu",
      // Else ONNX Runtime would quietly leave on the CPU what the GPU cannot do.
      extra: runtime.gpu ? { session: { disable_cpu_ep_fallback: "1" } } : {},
    });
    const told: Record<string, Tensor> = summary ? { [SUMMARY]: new runtime.ort.Tensor("float32", summary, [1, summary.length, 1, 1]) } : {};
    const opened = new NetworkSession(student, size, runtime, session, told);
    if (tried) return opened;
    try {
      const output = await opened.run();
      if (!output.every(Number.isFinite)) throw new Error(strings.network.notFinite);
      return opened;
    } catch (error) {
      await session.release();
      throw error;
    }
  }

  /** Gives `output`. */
  async run(): Promise<Float32Array> {
    const { input, output } = this.student;
    const { theirs } = this;
    if (theirs) toTheirs(this.input, theirs.convention, theirs.fed);
    const outputs = await this.session.run({ [input]: this.tensor, ...this.told });
    const values = (await outputs[output].getData(true)) as Float32Array;
    if (!theirs) return (this.output = this.coloured(values));
    if (theirs.made.length !== values.length) theirs.made = new Float32Array(values.length);
    return (this.output = this.coloured(toOurs(values, theirs.convention, theirs.made, (3 * values.length) / this.input.length)));
  }

  private coloured(planes: Float32Array): Float32Array {
    if (this.student.channels !== 1) return planes;
    const made = new Float32Array(3 * planes.length);
    for (let c = 0; c < 3; c++) made.set(planes, c * planes.length);
    return made;
  }

  /** Whether its pictures are the page's own planes. */
  get plain(): boolean {
    return !this.theirs;
  }

  /** The output of planes that lie on the graphics card, there too; whoever asks disposes of it. */
  async runOnCard(input: GPUBuffer): Promise<Tensor> {
    const tensor = this.runtime.ort.Tensor.fromGpuBuffer(input, { dataType: "float32", dims: this.tensor.dims });
    const outputs = await this.session.run({ [this.student.input]: tensor, ...this.told });
    return outputs[this.student.output];
  }

  async close(): Promise<void> {
    await this.session.release();
  }
}
