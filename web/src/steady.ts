/**
 * A light filter over time, that of distill.stylize's smooth=: an output is mixed with the last one
 * where nothing moves. In the worker, on float planes; nothing is allocated but at a new size.
 */

export const BLOCK = 8; // pixels a side whose mean is compared: an eighth of the sensor's noise is left
export const STILL = 3 / 255; // change of a block's mean at which it is still mixed by a third

/** How much of the frame before stays, 0 to 1: of each block of `across` in a row, of a network's input. */
export interface Shares {
  weight: Float32Array<ArrayBuffer>;
  across: number;
}

export class Smoother {
  private width = 0;
  private height = 0;
  private last: Float32Array = new Float32Array(0);
  private means: Float32Array = new Float32Array(0); // three colours of each block
  private reference: Float32Array = new Float32Array(0);
  private change: Float32Array = new Float32Array(0);
  private weight: Float32Array<ArrayBuffer> = new Float32Array(0);
  private between = new Between(0, []);

  /** By which the last result was mixed: 0 where it was the first. */
  get mixed(): Shares {
    return { weight: this.weight, across: Math.ceil(this.width / BLOCK) };
  }

  /** What comes next has nothing to do with what came before. */
  forget(): void {
    this.width = this.height = 0;
  }

  /**
   * Mix `output` in place with the result before by `strength` (0 to below 1) where nothing moves:
   * w = strength · exp(-(d / 3)²), d the change of `input` in levels of 255, the largest of a block's
   * colours and neighbours, to the input mixed by the same weights. Slow changes so end the mixing
   * before a trail can be seen. Both are planes of this size, three of the input.
   */
  apply(input: Float32Array, output: Float32Array, width: number, height: number, strength: number): void {
    const [wide, high] = [Math.ceil(width / BLOCK), Math.ceil(height / BLOCK)];
    const fresh = width !== this.width || height !== this.height || output.length !== this.last.length;
    if (fresh) this.resize(width, height, wide * high, output.length);
    blockMeans(input, width, height, this.means);
    if (fresh) {
      this.reference.set(this.means);
      this.last.set(output);
      return;
    }
    this.compare(wide, high, strength);
    this.mix(output);
  }

  private resize(width: number, height: number, blocks: number, length: number): void {
    [this.width, this.height] = [width, height];
    this.last = new Float32Array(length);
    this.means = new Float32Array(3 * blocks);
    this.reference = new Float32Array(3 * blocks);
    this.change = new Float32Array(blocks);
    this.weight = new Float32Array(blocks);
    this.between = new Between(Math.ceil(width / BLOCK), Array.from({ length: width }, (_, x) => (x + 0.5) / BLOCK));
  }

  /** The weight of every block; the reference follows. */
  private compare(wide: number, high: number, strength: number): void {
    const { means, reference, change, weight } = this;
    const blocks = wide * high;
    for (let i = 0; i < blocks; i++) {
      let most = 0;
      for (let at = i; at < 3 * blocks; at += blocks)
        most = Math.max(most, Math.abs(means[at] - reference[at]));
      change[i] = most;
    }
    for (let y = 0, i = 0; y < high; y++) {
      for (let x = 0; x < wide; x++, i++) {
        let most = 0;
        for (let row = Math.max(0, y - 1); row <= Math.min(high - 1, y + 1); row++)
          for (let column = Math.max(0, x - 1); column <= Math.min(wide - 1, x + 1); column++)
            most = Math.max(most, change[row * wide + column]);
        weight[i] = strength * Math.exp(-((most / STILL) ** 2));
      }
    }
    for (let at = 0; at < 3 * blocks; at++)
      reference[at] = means[at] + weight[at % blocks] * (reference[at] - means[at]);
  }

  /** Weights between the blocks' middles, bilinear; the last blocks may reach beyond the edge. */
  private mix(output: Float32Array): void {
    const { width, height, last, weight } = this;
    for (let y = 0; y < height; y++) {
      const shares = this.between.row(weight, (y + 0.5) / BLOCK);
      for (let from = y * width; from < output.length; from += width * height)
        for (let x = 0, i = from; x < width; x++, i++)
          output[i] = last[i] = output[i] + shares[x] * (last[i] - output[i]);
    }
  }
}

/** A coarse grid's values between the middles of its cells, bilinear; beyond the outer ones as there. */
export class Between {
  private readonly left: Int32Array;
  private readonly beside: Float32Array; // the right cell's share
  private readonly cells: Float32Array;
  private readonly values: Float32Array;

  /** Of so many cells `across`, at places counted in cells from the left edge. */
  constructor(
    private readonly across: number,
    places: number[],
  ) {
    const clamped = places.map((place) => Math.min(across - 1, Math.max(0, place - 0.5)));
    this.left = Int32Array.from(clamped, Math.floor);
    this.beside = Float32Array.from(clamped, (at) => at % 1);
    this.cells = new Float32Array(across + 1); // the last one twice
    this.values = new Float32Array(places.length);
  }

  /** The values of a row at that place, in cells from the top; written over by the next call. */
  row(grid: Float32Array, place: number): Float32Array {
    const { across, cells, left, beside, values } = this;
    const last = grid.length / across - 1;
    const at = Math.min(last, Math.max(0, place - 0.5));
    const [up, down] = [across * Math.floor(at), across * Math.min(last, Math.floor(at) + 1)];
    for (let x = 0; x < across; x++) cells[x] = grid[up + x] + (at % 1) * (grid[down + x] - grid[up + x]);
    cells[across] = cells[across - 1];
    for (let x = 0; x < values.length; x++) values[x] = cells[left[x]] + beside[x] * (cells[left[x] + 1] - cells[left[x]]);
    return values;
  }
}

/** The mean of every block and colour, of as many pixels as the block has. */
function blockMeans(planes: Float32Array, width: number, height: number, means: Float32Array): void {
  const [wide, high] = [Math.ceil(width / BLOCK), Math.ceil(height / BLOCK)];
  means.fill(0);
  for (let plane = 0; plane < 3; plane++) {
    for (let y = 0; y < height; y++) {
      const row = (plane * high + (y >> 3)) * wide;
      const from = (plane * height + y) * width;
      for (let x = 0; x < wide; x++) {
        const end = from + Math.min(width, BLOCK * (x + 1));
        let sum = 0;
        for (let i = from + BLOCK * x; i < end; i++) sum += planes[i];
        means[row + x] += sum;
      }
    }
    for (let y = 0; y < high; y++) {
      for (let x = 0; x < wide; x++) {
        const pixels = Math.min(BLOCK, width - BLOCK * x) * Math.min(BLOCK, height - BLOCK * y);
        means[(plane * high + y) * wide + x] /= pixels;
      }
    }
  }
}
