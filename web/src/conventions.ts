/**
 * Networks of other conventions, as distill.stylize has them (stylize/conventions.py): other ranges of
 * values, BGR, channels last. The page's own is float32 (1, 3, height, width), RGB in [0, 1]. In the worker.
 */
import type { Size } from "./protocol";

export type Pair = readonly [number, number]; // what black and white are

export interface Convention {
  input: Pair;
  output: Pair;
  channels: "rgb" | "bgr";
  layout: "nchw" | "nhwc";
}

export const RANGES: readonly Pair[] = [[0, 1], [-1, 1], [0, 255]];
export const OURS: Convention = { input: [0, 1], output: [0, 1], channels: "rgb", layout: "nchw" };

const CELL = 16; // pixels: colours are compared by the means of such squares, whatever the lines are like
const NEAR = 0.15; // mean distance of these colours from the photo's: a stylised photo is like it
const CLEAR = 0.65; // of the distance with the second-best ranges, at most
const BEYOND = 0.1; // how far outside of its range one value in two hundred may be
const FILLED = 0.7; // of its range, by an output that is unlike the photo: of one pair alone, it is that

export function ours({ input, output, channels, layout }: Convention): boolean {
  return [input, output].every(([black, white]) => black === 0 && white === 1) && channels === "rgb" && layout === "nchw";
}

/** Planes R, G, B in [0, 1] as a network takes them, written to `made`. */
export function toTheirs(planes: Float32Array, { input: [black, white], channels, layout }: Convention, made: Float32Array<ArrayBuffer>): Float32Array<ArrayBuffer> {
  const count = planes.length / 3;
  for (let c = 0; c < 3; c++) {
    const [from, to] = [count * c, channels === "bgr" ? 2 - c : c];
    if (layout === "nhwc") for (let i = 0; i < count; i++) made[3 * i + to] = black + (white - black) * planes[from + i];
    else for (let i = 0; i < count; i++) made[count * to + i] = black + (white - black) * planes[from + i];
  }
  return made;
}

/** What a network gave, of three colours and perhaps alpha, as planes in [0, 1]. */
export function toOurs(values: Float32Array, { output: [black, white], channels, layout }: Convention, made: Float32Array<ArrayBuffer>, number = 3): Float32Array<ArrayBuffer> {
  const count = values.length / number;
  const scale = 1 / (white - black);
  for (let c = 0; c < number; c++) {
    const [from, to] = [channels === "bgr" && c < 3 ? 2 - c : c, count * c];
    if (layout === "nhwc") for (let i = 0; i < count; i++) made[to + i] = (values[number * i + from] - black) * scale;
    else for (let i = 0; i < count; i++) made[to + i] = (values[count * from + i] - black) * scale;
  }
  return made;
}

/**
 * The ranges with which outputs have nearly the colours of photographs; null if in doubt. `outputs` gives
 * planes, as the network makes them of what goes in with a range.
 */
export async function likely(
  pictures: Float32Array[],
  size: Size,
  taken: readonly Pair[],
  given: readonly Pair[],
  outputs: (pair: Pair) => Promise<Float32Array[]>,
): Promise<Pick<Convention, "input" | "output"> | null> {
  const found: { input: Pair; output: Pair; far: number; filled: boolean }[] = [];
  const wanted = pictures.map((planes) => cells(planes, size));
  for (const input of taken) {
    const made = await outputs(input);
    const edges = made.map((planes) => quantiles(planes));
    const means = made.map((planes) => cells(planes, size));
    for (const output of given) {
      const scaled = (value: number) => (value - output[0]) / (output[1] - output[0]);
      const low = Math.min(...edges.map(([each]) => scaled(each)));
      const high = Math.max(...edges.map(([, each]) => scaled(each)));
      if (!(low >= -BEYOND && high <= 1 + BEYOND)) continue; // NaN too
      const away = means.map((own, i) => mean(own.map((value, j) => Math.abs(scaled(value) - wanted[i][j]))));
      found.push({ input, output, far: mean(away), filled: high - low >= FILLED });
      // Linear networks make sense in several ranges: it is ours then.
      if (input[0] === 0 && input[1] === 1 && output[0] === 0 && output[1] === 1 && mean(away) <= NEAR) return { input, output };
    }
  }
  const [best, second] = found.sort((one, other) => one.far - other.far);
  if (best && best.far <= NEAR && (!second || best.far <= CLEAR * second.far)) return best;
  const filling = found.filter(({ filled }) => filled);
  return filling.length === 1 && best.far > NEAR ? filling[0] : null;
}

function cells(planes: Float32Array, { width, height }: Size): number[] {
  const [wide, high] = [Math.floor(width / CELL), Math.floor(height / CELL)];
  const sums = new Float64Array(3 * wide * high);
  for (let c = 0; c < 3; c++)
    for (let y = 0; y < high * CELL; y++)
      for (let x = 0, at = (c * height + y) * width; x < wide * CELL; x++, at++)
        sums[(c * high + Math.floor(y / CELL)) * wide + Math.floor(x / CELL)] += planes[at];
  return Array.from(sums, (sum) => sum / CELL ** 2);
}

function quantiles(planes: Float32Array): [number, number] {
  const sorted = planes.slice().sort();
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))];
  return [at(0.005), at(0.995)];
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
