/**
 * A network's output enlarged to the pixels that it is seen at, guided by the photo: the fast guided
 * filter (He and Sun 2015), as distill.stylize has it for upscale=guided, but by the photo's luma alone.
 * In every small window a colour of the output is taken for a linear function of the luma; the functions
 * are enlarged, smoothly, and applied to the photo. What they leave of a pixel, as the lines of a style that
 * the photo has not, is added by the share of the window's variance that they leave: else `neon` would look
 * like a negative, `pencil` like a blurred photo. On the CPU; guided_gl.ts does it on a graphics card.
 * In the worker.
 */
import { drawSeen, LUMA } from "./planes";
import type { Box, InferResult, Size } from "./protocol";
import { BLOCK, Between, type Shares } from "./steady";

export const RADIUS = 2; // pixels of the output: a window is five wide
export const EPS = 1e-3; // variance of the luma below which a window is taken for flat, in [0, 1]²
const VALUES = 6; // of a pixel: three slopes and three offsets
const COUNT = (2 * RADIUS + 1) ** 2;
const OPAQUE = 0xff << 24;
const ROWS = 4; // of the photo, whose shares of the frame before are the same: they change slowly
export const LEVEL = 1 / 255 ** 2; // of an output's variance, in [0, 1]²: a window of less has nothing to explain
const SUMS = 9; // of a window: luma, its square, three colours, the luma times each of them, and their squares

/**
 * RGBA bytes of an output, and the luma of what the network saw, in [0, 1]; both have the rim. `shares`
 * says how much of both is the frame before's, which the photo's luma is then mixed with, too: a
 * camera's noise would else come back with it.
 */
export interface Small {
  luma: Float32Array;
  shares: Shares | null;
  pixels: Uint8ClampedArray<ArrayBuffer>;
  size: Size;
  rim: Size;
}

/** The photo that an output was made of. */
export type View = Pick<InferResult, "frame" | "crop" | "mirror">;

export class Guided {
  private above = new Float64Array(0); // of two rows of the output: the values of a pixel side by side
  private below = new Float64Array(0);
  private row = -1; // that `below` is of
  private columns: Float64Array[] = []; // at every column, the sums of a window's rows
  private opaque = true; // the output
  private luma: Float32Array = new Float32Array(0); // of the photo as it is shown
  private readonly context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true, alpha: false })!;

  /** RGBA bytes of that size, written over `into` where that has their length. */
  enlarge(small: Small, view: View, shown: Size, into: ArrayBuffer | null): Uint8ClampedArray<ArrayBuffer> {
    this.fit(small);
    const bytes = 4 * shown.width * shown.height;
    const made = new Uint8ClampedArray(into?.byteLength === bytes ? into : new ArrayBuffer(bytes));
    this.part(small, this.photo(view, shown), shown, { left: 0, top: 0, ...shown }, made);
    return made;
  }

  /** A part of a still picture as large as `shown`, of the photo's bytes there; `fit` comes before the first. */
  part(small: Small, photo: Uint8ClampedArray, shown: Size, part: Box, made: Uint8ClampedArray): void {
    const count = part.width * part.height;
    const shares = this.luma.length === count ? small.shares : null;
    if (this.luma.length !== count) this.luma = new Float32Array(count);
    this.apply({ ...small, shares }, photo, shown, part, made);
    if (!this.opaque) fade(small, shown, part, made);
  }

  private photo(view: View, shown: Size): Uint8ClampedArray {
    const { context } = this;
    const { canvas } = context;
    if (canvas.width !== shown.width || canvas.height !== shown.height) Object.assign(canvas, shown);
    drawSeen(context, view);
    return context.getImageData(0, 0, shown.width, shown.height).data;
  }

  /** What `part` enlarges from now on. */
  fit({ luma, pixels, size: { width } }: Small): void {
    this.restart(luma, pixels, width);
    this.opaque = true;
    for (let j = 3; j < pixels.length && this.opaque; j += 4) this.opaque = pixels[j] === 255;
  }

  /** Before the first row; beyond the picture its edge goes on. */
  private restart(luma: Float32Array, pixels: Uint8ClampedArray, width: number): void {
    if (this.above.length !== VALUES * width) [this.above, this.below] = [0, 1].map(() => new Float64Array(VALUES * width));
    this.columns = Array.from({ length: SUMS }, () => new Float64Array(width));
    this.row = -1;
    for (let y = -RADIUS - 1; y < RADIUS; y++) this.slide(luma, pixels, width * Math.max(0, y), 0, 0);
  }

  /** The function of each pixel of row `y` and the one above: that of the window around it. */
  private reach(y: number, { luma, pixels, size: { width, height } }: Small): void {
    if (y < this.row) this.restart(luma, pixels, width);
    while (this.row < y) {
      const at = ++this.row;
      const before = width * Math.max(0, at - RADIUS - 1);
      this.slide(luma, pixels, width * Math.min(height - 1, at + RADIUS), before, 1);
      [this.above, this.below] = [this.below, this.above];
      this.solve(luma, pixels, width * at);
    }
  }

  // One by one here and below: arrays of eight or six values would take twice the time.

  /** The columns' sums with the row that begins at pixel `i`, and (`less` 1) without the one at `k`. */
  private slide(luma: Float32Array, pixels: Uint8ClampedArray, i: number, k: number, less: number): void {
    const [l, ll, r, g, b, lr, lg, lb, cc] = this.columns;
    for (let x = 0, j = 4 * i, m = 4 * k; x < l.length; x++, i++, k++, j += 4, m += 4) {
      const l1 = luma[i], r1 = pixels[j], g1 = pixels[j + 1], b1 = pixels[j + 2];
      const l0 = less * luma[k], r0 = less * pixels[m], g0 = less * pixels[m + 1], b0 = less * pixels[m + 2];
      l[x] += l1 - l0;
      ll[x] += l1 * l1 - l0 * l0;
      r[x] += r1 - r0;
      g[x] += g1 - g0;
      b[x] += b1 - b0;
      lr[x] += l1 * r1 - l0 * r0;
      lg[x] += l1 * g1 - l0 * g0;
      lb[x] += l1 * b1 - l0 * b0;
      cc[x] += r1 * r1 + g1 * g1 + b1 * b1 - r0 * r0 - g0 * g0 - b0 * b0;
    }
  }

  /** The functions of the row that begins at pixel `from`: of windows that slide along it. */
  private solve(luma: Float32Array, pixels: Uint8ClampedArray, from: number): void {
    const functions = this.below;
    const [l, ll, r, g, b, lr, lg, lb, cc] = this.columns;
    const last = l.length - 1;
    const first = (sums: Float64Array) => (2 * RADIUS) * sums[0] + sums[Math.min(RADIUS - 1, last)]; // of a window left of the first
    let sl = first(l), sll = first(ll), sr = first(r), sg = first(g), sb = first(b), slr = first(lr), slg = first(lg), slb = first(lb), scc = first(cc);
    for (let x = 0, at = 0; x <= last; x++, at += VALUES) {
      const i = Math.min(last, x + RADIUS), k = Math.max(0, x - RADIUS - 1);
      sl += l[i] - l[k];
      sll += ll[i] - ll[k];
      sr += r[i] - r[k];
      sg += g[i] - g[k];
      sb += b[i] - b[k];
      slr += lr[i] - lr[k];
      slg += lg[i] - lg[k];
      slb += lb[i] - lb[k];
      scc += cc[i] - cc[k];
      const mean = sl / COUNT;
      const variance = sll / COUNT - mean * mean + EPS;
      const scale = 1 / (COUNT * variance);
      const red = (functions[at] = (slr - mean * sr) * scale);
      const green = (functions[at + 1] = (slg - mean * sg) * scale);
      const blue = (functions[at + 2] = (slb - mean * sb) * scale);
      const mr = sr / COUNT, mg = sg / COUNT, mb = sb / COUNT;
      const explained = (red * red + green * green + blue * blue) * variance;
      const rest = 1 - explained / (scc / COUNT - mr * mr - mg * mg - mb * mb + 1);
      const own = mean + rest * (luma[from + x] - mean), j = 4 * (from + x);
      functions[at + 3] = mr + rest * (pixels[j] - mr) - red * own;
      functions[at + 4] = mg + rest * (pixels[j + 1] - mg) - green * own;
      functions[at + 5] = mb + rest * (pixels[j + 2] - mb) - blue * own;
    }
  }

  /**
   * The functions, bilinear between the pixels' middles, of the photo's luma; that is mixed with the
   * frame before's as the output is.
   */
  private apply(small: Small, photo: Uint8ClampedArray, shown: Size, part: Box, made: Uint8ClampedArray): void {
    const { luma } = this;
    const { size, rim, shares } = small;
    const places = Array.from({ length: part.width }, (_, x) => between(part.left + x, shown.width, size.width, rim.width));
    const firsts = Int32Array.from(places, ([first]) => VALUES * first);
    const seconds = Float64Array.from(places, ([, share]) => share);
    const block = (at: number, shown: number, pixels: number, rim: number) => (place(at, shown, pixels, rim) + 0.5) / BLOCK;
    const blocks = shares && new Between(shares.across, places.map((_, x) => block(part.left + x, shown.width, size.width, rim.width)));
    const [red, green, blue] = LUMA.map((weight) => weight / 255);
    const [seen, pixels] = [photo, made].map(({ buffer, byteOffset, length }) => new Uint32Array(buffer, byteOffset, length / 4));
    let stays: Float32Array | undefined;
    for (let y = part.top, at = 0; y < part.top + part.height; y++) {
      const [first, lower] = between(y, shown.height, size.height, rim.height);
      this.reach(first + 1, small);
      const { above, below } = this;
      if (y === part.top || y % ROWS === 0) stays = blocks?.row(shares!.weight, block(y + ROWS / 2, shown.height, size.height, rim.height));
      let cell = -1, r = 0, g = 0, b = 0, r0 = 0, g0 = 0, b0 = 0, dr = 0, dg = 0, db = 0, dr0 = 0, dg0 = 0, db0 = 0;
      for (let x = 0; x < part.width; x++, at++) {
        const i = firsts[x];
        if (i !== cell) {
          if (i === cell + VALUES) r += dr, g += dg, b += db, r0 += dr0, g0 += dg0, b0 += db0;
          else {
            r = mixed(above, below, lower, i), r0 = mixed(above, below, lower, i + 3);
            g = mixed(above, below, lower, i + 1), g0 = mixed(above, below, lower, i + 4);
            b = mixed(above, below, lower, i + 2), b0 = mixed(above, below, lower, i + 5);
          }
          cell = i;
          dr = mixed(above, below, lower, i + 6) - r, dr0 = mixed(above, below, lower, i + 9) - r0;
          dg = mixed(above, below, lower, i + 7) - g, dg0 = mixed(above, below, lower, i + 10) - g0;
          db = mixed(above, below, lower, i + 8) - b, db0 = mixed(above, below, lower, i + 11) - b0;
        }
        const rgba = seen[at];
        let now = red * (rgba & 255) + green * ((rgba >> 8) & 255) + blue * ((rgba >> 16) & 255);
        if (stays) now += stays[x] * (luma[at] - now);
        luma[at] = now;
        const share = seconds[x];
        const mr = clamped((r + share * dr) * now + r0 + share * dr0);
        const mg = clamped((g + share * dg) * now + g0 + share * dg0);
        const mb = clamped((b + share * db) * now + b0 + share * db0);
        pixels[at] = mr | (mg << 8) | (mb << 16) | OPAQUE;
      }
    }
  }
}

function mixed(above: Float64Array, below: Float64Array, share: number, at: number): number {
  return above[at] + share * (below[at] - above[at]);
}

function clamped(level: number): number {
  const whole = (level + 0.5) | 0;
  return whole & ~255 ? (whole < 0 ? 0 : 255) : whole;
}

/** The alpha of what is enlarged, bilinear as its functions. */
function fade({ pixels, size, rim }: Small, shown: Size, { left, top, width, height }: Box, made: Uint8ClampedArray): void {
  for (let y = 0, at = 3; y < height; y++) {
    const [above, below] = between(top + y, shown.height, size.height, rim.height);
    const alpha = (x: number, i = 4 * (above * size.width + x) + 3) => pixels[i] + below * (pixels[i + 4 * size.width] - pixels[i]);
    for (let x = 0; x < width; x++, at += 4) {
      const [first, share] = between(left + x, shown.width, size.width, rim.width);
      made[at] = alpha(first) + share * (alpha(first + 1) - alpha(first));
    }
  }
}

/** Of one of `shown` pixels: which two of `pixels` with a rim its middle lies between, and the second's share. */
function between(at: number, shown: number, pixels: number, rim: number): [number, number] {
  const where = Math.max(0, Math.min(pixels - 1, place(at, shown, pixels, rim)));
  const first = Math.min(pixels - 2, Math.floor(where));
  return [first, where - first];
}

/** Where the middle of one of `shown` pixels lies in `pixels` with a rim. */
function place(at: number, shown: number, pixels: number, rim: number): number {
  return rim + ((at + 0.5) * (pixels - 2 * rim)) / shown - 0.5;
}
