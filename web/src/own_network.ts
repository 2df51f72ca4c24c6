/** A network that the user opened: what the page must know of it, found by trying it. In the worker. */
import type { InferenceSession } from "onnxruntime-web";
import type { Student } from "./manifest";
import { freeSize, namedSide, noted, splitAtSummary } from "./onnx_file";
import type { Runtime } from "./runtime";
import { strings } from "./strings";

const SIDE = 256; // pixels, where the file leaves the size open
const PROBE = [64, 96] as const; // height and width that no file names: another size goes, too
const COLOURS_AT = "distill.colours_at"; // in a file's metadata, as the export notes it
const BEYOND = 0.5; // how far outside of [0, 1] a network without a last sigmoid may go
const { own } = strings;

/** Throws an Error that says why it cannot be a style. `kind` is what the user wants it for. */
export async function examine(
  file: string,
  name: string,
  kind: Student["kind"],
  bytes: ArrayBuffer,
  { ort, gpu }: Runtime,
  sides: readonly [number, number] = [SIDE, SIDE],
): Promise<Student> {
  const executionProviders = [gpu ? "webgpu" : "wasm"];
  const session = await ort.InferenceSession.create(bytes, { executionProviders }).catch(() => {
    throw new Error(own.unreadable);
  });
  try {
    const { fixed, side } = inputSides(session);
    const [height, width] = fixed ?? sides;
    // Black to white, so that a network of other ranges is seen.
    const wedge = Float32Array.from({ length: 3 * height * width }, (_, i) => (i % width) / width);
    const tensor = new ort.Tensor("float32", wedge, [1, 3, height, width]);
    const [input, output] = [session.inputNames[0], session.outputNames[0]];
    const made = (await session.run({ [input]: tensor }))[output];
    const channels = made.dims[1];
    const fits = made.dims.length === 4 && made.dims[2] === height && made.dims[3] === width;
    if (made.type !== "float32" || !fits || (channels !== 3 && channels !== 4))
      throw new Error(own.otherOutput(made.type, made.dims.join(" × ")));
    checkRange((await made.getData()) as Float32Array);
    const known = { file, name, kind, channels, input, output, fixed, side } as const;
    const told = splitAtSummary(bytes) !== null;
    return { ...known, bytes: bytes.byteLength, colours_at: null, told, thumbnail: null, licence: "" };
  } finally {
    await session.release();
  }
}

/** The same of a network whose file names a size that it does not need; null where it does. */
export async function examineFree(
  file: string,
  name: string,
  kind: Student["kind"],
  given: ArrayBuffer,
  runtime: Runtime,
): Promise<{ student: Student; bytes: ArrayBuffer } | null> {
  try {
    const bytes = freeSize(given);
    const found = await examine(file, name, kind, bytes, runtime, PROBE);
    const colours = Number(noted(given, COLOURS_AT));
    const student = { ...found, side: namedSide(given) ?? SIDE, colours_at: colours || null };
    return { student, bytes };
  } catch {
    return null; // the file as it is will do, or says what is wrong
  }
}

/** Its one size, if the file names one, and the side to begin with. */
function inputSides({ inputMetadata }: InferenceSession): Pick<Student, "fixed" | "side"> {
  if (inputMetadata.length !== 1) throw new Error(own.inputs(inputMetadata.length));
  const [input] = inputMetadata;
  const shape = input.isTensor ? input.shape : [];
  const type = input.isTensor ? input.type : "";
  if (type !== "float32" || shape.length !== 4 || (typeof shape[1] === "number" && shape[1] !== 3))
    throw new Error(own.otherInput(type, shape.join(" × ")));
  const [height, width] = shape.slice(2).map((each) => (typeof each === "number" && each > 0 ? each : 0));
  if (!height || !width) return { fixed: null, side: SIDE };
  return { fixed: [height, width], side: Math.max(height, width) };
}

function checkRange(values: Float32Array): void {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) throw new Error(strings.network.notFinite);
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low < -BEYOND || high > 1 + BEYOND) throw new Error(own.range(low, high));
}
