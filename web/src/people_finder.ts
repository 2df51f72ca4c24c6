/** Which pixels show people: MediaPipe's selfie segmentation. In the worker. */
import type { InferenceSession, Tensor } from "onnxruntime-web";
import { SIDE, type MaskSource } from "./mask_source";
import type { Runtime } from "./runtime";

const [INPUT, OUTPUT] = ["photo", "people"]; // as tools/mediapipe_networks.py names them

/** The network knows one size, that of masks, and learned on pictures squeezed to it. */
export class PeopleFinder implements MaskSource {
  // It answers with some hundredths where nobody is, which would leave a veil there.
  readonly none = 0.1;
  readonly whole = 0.9;
  private readonly input = new Float32Array(3 * SIDE * SIDE);
  private readonly tensor: Tensor;

  constructor(
    { ort }: Runtime,
    private readonly session: InferenceSession,
  ) {
    this.tensor = new ort.Tensor("float32", this.input, [1, 3, SIDE, SIDE]);
  }

  async runs(): Promise<boolean> {
    return (await this.run()).every(Number.isFinite);
  }

  find(photo: Float32Array): Promise<Float32Array> {
    this.input.set(photo);
    return this.run();
  }

  private async run(): Promise<Float32Array> {
    const outputs = await this.session.run({ [INPUT]: this.tensor });
    return (await outputs[OUTPUT].getData()) as Float32Array;
  }
}
