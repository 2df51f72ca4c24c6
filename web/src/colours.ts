/**
 * Colours of a large output from the size that the network learnt at, as distill.stylize carries
 * them (inference/colours.py): what is wider than 16 pixels of an output of that size is taken from
 * it. In the worker.
 */
import type { Size } from "./protocol";
import { BICUBIC, BOX, resample, rounded, taps, type Taps, type Values } from "./resample";

const CELL = 16; // pixels of the small output: what is wider is taken from it

/** Cells across and down of a small output. */
export function cells({ width, height }: Size): Size {
  const count = (side: number) => Math.max(1, rounded(side / CELL));
  return { width: count(width), height: count(height) };
}

/** What a large output lacks of the colours of a small one: one mean a cell and colour, enlarged. */
export class WideColours {
  private readonly columns: Float32Array[];
  private readonly down: Taps;
  private readonly line: Float32Array;

  /** `missing`: a plane of `cells` for each of three colours. */
  constructor(missing: Float32Array<ArrayBuffer>[], cells: Size, large: Size) {
    const across = { width: large.width, height: cells.height };
    this.columns = missing.map(
      (plane) => resample(plane, cells, 1, across, BICUBIC) as Float32Array,
    );
    this.down = taps(cells.height, 0, cells.height, large.height, BICUBIC);
    this.line = new Float32Array(large.width);
  }

  /** What a row lacks of one colour; written over by the next call. */
  row(colour: number, y: number): Float32Array {
    const { line, down } = this;
    const { length } = line;
    const cells = this.columns[colour];
    const [one, two = 0, three = 0, four = 0] = down.weights[y]; // a cubic has four taps, fewer at an edge
    const at = down.first[y] * length;
    const row = (tap: number) => Math.min(at + tap * length, cells.length - length);
    const [a, b, c, d] = [row(0), row(1), row(2), row(3)];
    for (let x = 0; x < length; x++)
      line[x] = one * cells[a + x] + two * cells[b + x] + three * cells[c + x] + four * cells[d + x];
    return line;
  }
}

/** Planes of a network's size; what is shown of them lies inside the rim. */
export interface Planes extends Size {
  values: Float32Array;
  rim: Size;
}

/** The same of planes in [0, 1]: `into` gets those of `large` with the wide colours of `small`. */
export function recolourPlanes(large: Planes, small: Planes, into: Float32Array): void {
  const coarse = cells(inside(small));
  const missing = [0, 1, 2].map((colour) => {
    const [wanted, got] = [small, large].map((each) => resample(shown(each, colour), inside(each), 1, coarse, BOX));
    return Float32Array.from(wanted, (value, i) => value - got[i]);
  });
  const own = inside(large);
  const wide = new WideColours(missing, coarse, own);
  into.set(large.values);
  for (let colour = 0; colour < 3; colour++) {
    for (let y = 0; y < own.height; y++) {
      const row = wide.row(colour, y);
      const at = (colour * large.height + y + large.rim.height) * large.width + large.rim.width;
      for (let x = 0; x < row.length; x++) into[at + x] += row[x];
    }
  }
}

function inside({ width, height, rim }: Planes): Size {
  return { width: width - 2 * rim.width, height: height - 2 * rim.height };
}

/** One colour of what is shown. */
function shown(planes: Planes, colour: number): Float32Array<ArrayBuffer> {
  const { width, height } = inside(planes);
  const made = new Float32Array(width * height);
  for (let y = 0; y < height; y++) {
    const at = (colour * planes.height + y + planes.rim.height) * planes.width + planes.rim.width;
    made.set(planes.values.subarray(at, at + width), y * width);
  }
  return made;
}

/** Two outputs of one picture, RGBA bytes of these sizes: `large`, in place, with the wide colours of `small`. */
export function recolour(large: Values, own: Size, small: Values, at: Size): void {
  const shrunk = resample(large, own, 4, at, BOX);
  const coarse = cells(at);
  const missing = [0, 1, 2].map((colour) => {
    const difference = new Float32Array(at.width * at.height);
    for (let i = 0, j = colour; i < difference.length; i++, j += 4) difference[i] = small[j] - shrunk[j];
    return resample(difference, at, 1, coarse, BOX) as Float32Array<ArrayBuffer>;
  });
  const wide = new WideColours(missing, coarse, own);
  for (let y = 0; y < own.height; y++) {
    for (let colour = 0; colour < 3; colour++) {
      const row = wide.row(colour, y);
      for (let x = 0, j = 4 * y * own.width + colour; x < row.length; x++, j += 4) large[j] += row[x];
    }
  }
}
