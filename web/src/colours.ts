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
    const { line, columns, down } = this;
    const { length } = line;
    line.fill(0);
    down.weights[y].forEach((weight, j) => {
      const at = (down.first[y] + j) * length;
      for (let x = 0; x < length; x++) line[x] += weight * columns[colour][at + x];
    });
    return line;
  }
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
