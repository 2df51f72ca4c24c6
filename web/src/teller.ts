/** What a student is told of the whole picture: the `summary` of its thumbnail. In the worker. */
import { NetworkSession } from "./network_session";
import { SUMMARY, THUMBNAIL, type Parts } from "./onnx_file";
import type { Size } from "./protocol";
import { BILINEAR, resample } from "./resample";
import type { Runtime } from "./runtime";

const SCENE = 0.2; // of its length that a summary may change by and still be mixed by a third
const SQUARE: Size = { width: THUMBNAIL, height: THUMBNAIL };

export class Teller {
  /** Of the picture that was looked at last, a black one before the first; the same array each time. */
  readonly summary: Float32Array<ArrayBuffer>;
  private fresh = true;

  private constructor(private readonly session: NetworkSession) {
    this.summary = session.output.slice() as Float32Array<ArrayBuffer>;
  }

  static async open({ teller, thumbnail }: Parts, runtime: Runtime): Promise<Teller> {
    const network = { input: thumbnail, output: SUMMARY, fixed: [THUMBNAIL, THUMBNAIL] as [number, number] };
    return new Teller(await NetworkSession.open(network, SQUARE, runtime, teller));
  }

  /** What comes next has nothing to do with what came before. */
  forget(): void {
    this.fresh = true;
  }

  /**
   * Look at a whole picture, RGBA bytes. By `strength` (0 to below 1) the summary is mixed with the one
   * before, less where they differ more, as distill.stylize does in videos (SmoothSummary).
   */
  async look(picture: Uint8ClampedArray<ArrayBuffer>, size: Size, strength = 0): Promise<void> {
    const { session } = this;
    // Floats, as in the exported file: a palette that is predicted of rounded ones is another one.
    const thumbnail = resample(new Float32Array(picture), size, 4, SQUARE, BILINEAR);
    const plane = THUMBNAIL ** 2;
    for (let i = 0; i < 3 * plane; i++) session.input[i] = thumbnail[4 * (i % plane) + Math.floor(i / plane)] / 255;
    this.take(await session.run(), strength);
  }

  /** The same of planes of the thumbnail's size on the graphics card. */
  async lookOnCard(thumbnail: GPUBuffer, strength: number): Promise<void> {
    this.take((await (await this.session.runOnCard(thumbnail)).getData(true)) as Float32Array, strength);
  }

  private take(found: Float32Array, strength: number): void {
    const { summary } = this;
    const change = Math.hypot(...found.map((value, i) => value - summary[i])) / Math.max(1e-12, Math.hypot(...found));
    const kept = this.fresh ? 0 : strength * Math.exp(-((change / SCENE) ** 2));
    summary.forEach((before, i) => (summary[i] = found[i] + kept * (before - found[i])));
    this.fresh = false;
  }

  async close(): Promise<void> {
    await this.session.close();
  }
}
