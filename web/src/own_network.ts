/** A network that the user opened: what the page must know of it, found by trying it. In the worker. */
import type { InferenceSession, TypedTensor } from "onnxruntime-web";
import { OURS, RANGES, likely, toOurs, toTheirs, type Convention, type Pair } from "./conventions";
import type { Student } from "./manifest";
import { freeSize, namedSide, noted, splitAtSummary } from "./onnx_file";
import { toPlanes } from "./planes";
import type { AdoptRequest } from "./protocol";
import type { Runtime } from "./runtime";
import { strings } from "./strings";

const SIDE = 256; // pixels, where the file leaves the size open
const PROBE = [64, 96] as const; // height and width that no file names: another size goes, too
const COLOURS_AT = "distill.colours_at"; // in a file's metadata, as the export notes it
const OWN = [COLOURS_AT, "distill.terms"]; // likewise: such a file takes and gives RGB, in [0, 1]
const ABOUT = "distill.about"; // where this does not say another range
const EMBEDDED = import.meta.env.MODE === "element"; // which asks nobody, and stays small
const BEYOND = 0.5; // how far outside of [0, 1] a network without a last sigmoid may go
// Left, top, width and height of parts of the photo by which a network is tried, as shares.
const PARTS = [[0, 0, 1, 1], [0, 0, 0.6, 0.6], [0.4, 0.4, 0.6, 0.6]] as const;
const { own } = strings;

type Asked = Pick<AdoptRequest, "name" | "kind" | "bytes" | "photo" | "said">;

/** Throws an Error that says why it cannot be a style. `convention` null: that is in doubt. */
export async function examine(
  file: string,
  { name, kind, bytes, photo, said }: Asked,
  { ort, gpu }: Runtime,
  sides: readonly [number, number] = [SIDE, SIDE],
): Promise<Student> {
  const executionProviders = [gpu ? "webgpu" : "wasm"];
  const session = await ort.InferenceSession.create(bytes, { executionProviders }).catch(() => {
    throw new Error(own.unreadable);
  });
  try {
    const { fixed, side, layout } = inputSides(session, said);
    const [height, width] = fixed ?? sides;
    const [input, output] = [session.inputNames[0], session.outputNames[0]];
    const size = { width, height };
    const run = async (planes: Float32Array, convention: Convention) => {
      const dims = layout === "nhwc" ? [1, height, width, 3] : [1, 3, height, width];
      const tensor = new ort.Tensor("float32", EMBEDDED ? planes : toTheirs(planes, convention, new Float32Array(planes.length)), dims);
      const made = (await session.run({ [input]: tensor }))[output];
      const [rows, columns, channels] = layout === "nhwc" ? made.dims.slice(1) : [made.dims[2], made.dims[3], made.dims[1]];
      const fits = made.dims.length === 4 && rows === height && columns === width;
      if (made.type !== "float32" || !fits || ![1, 3, 4].includes(channels))
        throw new Error(own.otherOutput(made.type, made.dims.join(" × ")));
      return { channels: channels as 1 | 3 | 4, values: (await (made as TypedTensor<"float32">).getData()).slice() };
    };
    const plain: Convention = { ...OURS, ...rangesSaid(bytes), ...said, layout };
    // Black to white: any picture will do where nothing is to be found.
    const wedge = Float32Array.from({ length: 3 * height * width }, (_, i) => (i % width) / width);
    const { channels, values } = await run(wedge, plain);
    if (!values.every(Number.isFinite)) throw new Error(strings.network.notFinite);
    const told = splitAtSummary(bytes) !== null;
    const known = told || OWN.some((key) => noted(bytes, key) !== null);
    let convention: Convention | null = plain;
    if (EMBEDDED) checkRange(values);
    else if (photo && !known && channels !== 1 && !(said.input && said.output)) {
      const pictures = PARTS.map((part) => planesOf(photo, part, width, height));
      const outputs = async (pair: Pair) => {
        const made: Float32Array[] = [];
        for (const planes of pictures) {
          const { values, channels } = await run(planes, { ...plain, input: pair });
          const seen = toOurs(values, { ...plain, output: [0, 1] }, new Float32Array(values.length), channels);
          made.push(seen.subarray(0, planes.length));
        }
        return made;
      };
      const found = await likely(pictures, size, said.input ? [said.input] : RANGES, said.output ? [said.output] : RANGES, outputs);
      convention = found && { ...plain, ...found };
    }
    const names = { file, name, kind, channels, input, output, fixed, side } as const;
    return { ...names, bytes: bytes.byteLength, colours_at: null, told, thumbnail: null, licence: "", convention };
  } finally {
    await session.release();
  }
}

/** The same of a network whose file names a size that it does not need; null where it does. */
export async function examineFree(
  file: string,
  asked: Asked,
  runtime: Runtime,
): Promise<{ student: Student; bytes: ArrayBuffer } | null> {
  try {
    const bytes = freeSize(asked.bytes);
    const found = await examine(file, { ...asked, bytes }, runtime, PROBE);
    const colours = Number(noted(asked.bytes, COLOURS_AT));
    const student = { ...found, side: namedSide(asked.bytes) ?? SIDE, colours_at: colours || null };
    return { student, bytes };
  } catch {
    return null; // the file as it is will do, or says what is wrong
  }
}

/** The ranges that distill.export noted in the file; nothing of other files. */
function rangesSaid(bytes: ArrayBuffer): Partial<Convention> {
  try {
    const { input, output } = JSON.parse(noted(bytes, ABOUT) ?? "") as Record<"input" | "output", { range: Pair }>;
    return { input: input.range, output: output.range };
  } catch {
    return {};
  }
}

/** Its one size, if the file names one, the side to begin with, and where its colours stand. */
function inputSides(
  { inputMetadata }: InferenceSession,
  said: Partial<Convention>,
): Pick<Student, "fixed" | "side"> & Pick<Convention, "layout"> {
  if (inputMetadata.length !== 1) throw new Error(own.inputs(inputMetadata.length));
  const [input] = inputMetadata;
  const shape = input.isTensor ? input.shape : [];
  const type = input.isTensor ? input.type : "";
  const layout = said.layout ?? (shape[3] === 3 && shape[1] !== 3 ? "nhwc" : "nchw");
  const [rows, columns, colours] = layout === "nhwc" ? shape.slice(1) : [shape[2], shape[3], shape[1]];
  if (type !== "float32" || shape.length !== 4 || (typeof colours === "number" && colours > 0 && colours !== 3))
    throw new Error(own.otherInput(type, shape.join(" × ")));
  const [height, width] = [rows, columns].map((each) => (typeof each === "number" && each > 0 ? each : 0));
  if (!height || !width) return { fixed: null, side: SIDE, layout };
  return { fixed: [height, width], side: Math.max(height, width), layout };
}

function planesOf(photo: ImageBitmap, [left, top, wide, high]: (typeof PARTS)[number], width: number, height: number): Float32Array {
  const context = new OffscreenCanvas(width, height).getContext("2d", { alpha: false })!;
  context.imageSmoothingQuality = "high";
  context.drawImage(photo, left * photo.width, top * photo.height, wide * photo.width, high * photo.height, 0, 0, width, height);
  const planes = new Float32Array(3 * width * height);
  toPlanes(context.getImageData(0, 0, width, height).data, planes);
  return planes;
}

function checkRange(values: Float32Array): void {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low < -BEYOND || high > 1 + BEYOND) throw new Error(own.range(low, high));
}
