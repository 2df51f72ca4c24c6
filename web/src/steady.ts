/**
 * A light filter over time, that of distill.stylize's smooth=: an output is mixed with the last one
 * where nothing moves. In the worker, on float planes; nothing is allocated but at a new size.
 */

export const BLOCK = 8; // pixels a side whose mean is compared: an eighth of the sensor's noise is left
const STILL = 3 / 255; // change of a block's mean at which it is still mixed by a third

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
  private row: Float32Array = new Float32Array(0);
  private shares: Float32Array = new Float32Array(0); // of each pixel of a row
  private columns: Float32Array = new Float32Array(0); // likewise: see `between`

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
    this.mix(output, wide, high);
  }

  private resize(width: number, height: number, blocks: number, length: number): void {
    [this.width, this.height] = [width, height];
    this.last = new Float32Array(length);
    this.means = new Float32Array(3 * blocks);
    this.reference = new Float32Array(3 * blocks);
    this.change = new Float32Array(blocks);
    this.weight = new Float32Array(blocks);
    const wide = Math.ceil(width / BLOCK);
    this.row = new Float32Array(wide);
    this.shares = new Float32Array(width);
    this.columns = new Float32Array(3 * width);
    for (let x = 0; x < width; x++) this.columns.set(between(x, wide), 3 * x);
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
  private mix(output: Float32Array, wide: number, high: number): void {
    const { width, height, last, weight, columns, row, shares } = this;
    for (let y = 0; y < height; y++) {
      const [up, down, below] = between(y, high);
      for (let x = 0; x < wide; x++) {
        const above = weight[up * wide + x];
        row[x] = above + below * (weight[down * wide + x] - above);
      }
      for (let x = 0; x < width; x++) {
        const left = row[columns[3 * x]];
        shares[x] = left + columns[3 * x + 2] * (row[columns[3 * x + 1]] - left);
      }
      for (let from = y * width; from < output.length; from += width * height)
        for (let x = 0, i = from; x < width; x++, i++)
          output[i] = last[i] = output[i] + shares[x] * (last[i] - output[i]);
    }
  }
}

/** The two blocks between whose middles a place lies, in pixels, and the second one's share. */
export function between(pixel: number, blocks: number): [number, number, number] {
  const at = Math.min(blocks - 1, Math.max(0, (pixel + 0.5) / BLOCK - 0.5));
  const first = Math.floor(at);
  return [first, Math.min(blocks - 1, first + 1), at - first];
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
