/**
 * Colours of a large output from the size that the network learnt at, as distill.stylize carries
 * them (stylize/render.py): what is wider than 16 pixels of an output of that size is taken from
 * it. In the worker.
 */
import type { Size } from "./protocol";
import { along, BICUBIC, BOX, resample, rounded, taps, type Taps, type Values } from "./resample";

const CELL = 16; // pixels of the small output: what is wider is taken from it

/** Cells across and down of a small output. */
export function cells({ width, height }: Size): Size {
  const count = (side: number) => Math.max(1, rounded(side / CELL));
  return { width: count(width), height: count(height) };
}

/** What a large output lacks of the colours of a small one: one mean a cell and colour, enlarged. */
export class WideColours {
  private readonly across: Taps;
  private readonly down: Taps;
  private readonly line: Float32Array;
  private columns: Float32Array[] = [];

  constructor(
    private readonly cells: Size,
    large: Size,
  ) {
    this.across = taps(cells.width, 0, cells.width, large.width, BICUBIC);
    this.down = taps(cells.height, 0, cells.height, large.height, BICUBIC);
    this.line = new Float32Array(large.width);
  }

  /** `missing`: a plane of `cells` for each of three colours. */
  take(missing: Float32Array<ArrayBuffer>[]): this {
    this.columns = missing.map((plane) => along(plane, this.cells, 1, this.across) as Float32Array);
    return this;
  }

  /** A row of values, which begins at `at`, gets what it lacks of one colour. */
  add(colour: number, y: number, values: Float32Array, at: number): void {
    const cells = this.columns[colour];
    const [one, two = 0, three = 0, four = 0] = this.down.weights[y]; // a cubic has four taps, fewer at an edge
    const { length } = this.line;
    const first = this.down.first[y] * length;
    const row = (tap: number) => Math.min(first + tap * length, cells.length - length);
    const [a, b, c, d] = [row(0), row(1), row(2), row(3)];
    for (let x = 0, i = at; x < length; x++, i++)
      values[i] += one * cells[a + x] + two * cells[b + x] + three * cells[c + x] + four * cells[d + x];
  }

  /** What a row lacks of one colour; written over by the next call. */
  row(colour: number, y: number): Float32Array {
    this.add(colour, y, this.line.fill(0), 0);
    return this.line;
  }
}

/** A network's size; what is shown of its planes lies inside the rim. */
export interface Framed extends Size {
  rim: Size;
}

/** The same of planes in [0, 1], frame by frame: all that depends on the sizes alone is kept. */
export class PlaneColours {
  private readonly own: Size;
  private readonly wide: WideColours;
  private readonly wanted: CellMeans;
  private readonly got: CellMeans;

  constructor(
    private readonly large: Framed,
    private readonly small: Framed,
  ) {
    const coarse = cells(inside(small));
    this.own = inside(large);
    this.wide = new WideColours(coarse, this.own);
    this.wanted = new CellMeans(small, coarse);
    this.got = new CellMeans(large, coarse);
  }

  fits(large: Framed, small: Framed): boolean {
    return same(this.large, large) && same(this.small, small);
  }

  /** The large output's planes, in place, with the wide colours of the small one. */
  apply(large: Float32Array, small: Float32Array): void {
    const { own, wide, wanted, got } = this;
    const missing = [0, 1, 2].map((colour) => {
      const there = got.of(large, colour);
      return wanted.of(small, colour).map((value, i) => value - there[i]);
    });
    wide.take(missing);
    for (let colour = 0; colour < 3; colour++)
      for (let y = 0; y < own.height; y++) wide.add(colour, y, large, start(this.large, colour, y));
  }
}

/** The mean of every cell of what is shown of a plane. BOX is 0 or 1: a cell's pixels count alike. */
class CellMeans {
  private readonly across: Taps;
  private readonly down: Taps;

  constructor(
    private readonly framed: Framed,
    private readonly cells: Size,
  ) {
    const shown = inside(framed);
    this.across = taps(shown.width, 0, shown.width, cells.width, BOX);
    this.down = taps(shown.height, 0, shown.height, cells.height, BOX);
  }

  of(planes: Float32Array, colour: number): Float32Array<ArrayBuffer> {
    const { framed, cells, across, down } = this;
    const made = new Float32Array(cells.width * cells.height);
    for (let row = 0, to = 0; row < cells.height; row++, to += cells.width) {
      const rows = down.weights[row].length;
      for (let y = down.first[row]; y < down.first[row] + rows; y++) {
        const at = start(framed, colour, y);
        for (let column = 0; column < cells.width; column++) {
          const first = at + across.first[column];
          const end = first + across.weights[column].length;
          let sum = 0;
          for (let x = first; x < end; x++) sum += planes[x];
          made[to + column] += sum / (rows * (end - first));
        }
      }
    }
    return made;
  }
}

function same(one: Framed, two: Framed): boolean {
  const sides = ({ width, height, rim }: Framed) => [width, height, rim.width, rim.height];
  return String(sides(one)) === String(sides(two));
}

function inside({ width, height, rim }: Framed): Size {
  return { width: width - 2 * rim.width, height: height - 2 * rim.height };
}

/** Where a row of what is shown begins. */
function start({ width, height, rim }: Framed, colour: number, y: number): number {
  return (colour * height + y + rim.height) * width + rim.width;
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
  const wide = new WideColours(coarse, own).take(missing);
  for (let y = 0; y < own.height; y++) {
    for (let colour = 0; colour < 3; colour++) {
      const row = wide.row(colour, y);
      for (let x = 0, j = 4 * y * own.width + colour; x < row.length; x++, j += 4) large[j] += row[x];
    }
  }
}
