/**
 * A network's output enlarged to the pixels that it is seen at, guided by the photo: the fast guided
 * filter (He and Sun 2015), as distill.stylize has it for upscale=guided, but by the photo's luma alone.
 * In every small window a colour of the output is taken for a linear function of the luma; the functions
 * are enlarged, smoothly, and applied to the photo. On the CPU; guided_gl.ts does it on a graphics card.
 * In the worker.
 */
import { drawSeen, LUMA } from "./planes";
import type { Box, InferResult, Size } from "./protocol";
import { BLOCK, Between, type Shares } from "./steady";

export const RADIUS = 2; // pixels of the output: a window is five wide
export const EPS = 1e-3; // variance of the luma below which a window is taken for flat, in [0, 1]²
const VALUES = 7; // of a pixel: three slopes, three offsets, and how opaque it is

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
  private functions = new Float32Array(0); // the values of a pixel side by side
  private planes: Float32Array[] = [];
  private luma: Float32Array = new Float32Array(0); // of the photo as it is shown
  private readonly context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true, alpha: false })!;

  /** RGBA bytes of that size, written over `into` where that has their length. */
  enlarge(small: Small, view: View, shown: Size, into: ArrayBuffer | null): Uint8ClampedArray<ArrayBuffer> {
    this.fit(small);
    const bytes = 4 * shown.width * shown.height;
    const made = new Uint8ClampedArray(into?.byteLength === bytes ? into : new ArrayBuffer(bytes));
    this.guide(small, this.photo(view, shown), shown);
    this.apply(small, shown, { left: 0, top: 0, ...shown }, made);
    return made;
  }

  /** A part of a still picture as large as `shown`, of the photo's bytes there; `fit` comes before the first. */
  part(small: Small, photo: Uint8ClampedArray, shown: Size, part: Box, made: Uint8ClampedArray): void {
    this.guide(small, photo, part);
    this.apply(small, shown, part, made);
  }

  /** The photo's luma, mixed with the frame before's as the output is. */
  private guide({ shares, size, rim }: Small, photo: Uint8ClampedArray, shown: Size): void {
    const count = shown.width * shown.height;
    const kept = this.luma.length === count ? shares : null;
    if (this.luma.length !== count) this.luma = new Float32Array(count);
    const { luma } = this;
    const [red, green, blue] = LUMA.map((weight) => weight / 255);
    if (!kept) {
      for (let i = 0, j = 0; i < count; i++, j += 4) luma[i] = red * photo[j] + green * photo[j + 1] + blue * photo[j + 2];
      return;
    }
    const { weight, across } = kept;
    const block = (at: number, shown: number, pixels: number, rim: number) => (place(at, shown, pixels, rim) + 0.5) / BLOCK;
    const between = new Between(across, Array.from({ length: shown.width }, (_, x) => block(x, shown.width, size.width, rim.width)));
    for (let y = 0, i = 0, j = 0; y < shown.height; y++) {
      const stays = between.row(weight, block(y, shown.height, size.height, rim.height));
      for (let x = 0; x < shown.width; x++, i++, j += 4) {
        const now = red * photo[j] + green * photo[j + 1] + blue * photo[j + 2];
        luma[i] = now + stays[x] * (luma[i] - now);
      }
    }
  }

  private photo(view: View, shown: Size): Uint8ClampedArray {
    const { context } = this;
    const { canvas } = context;
    if (canvas.width !== shown.width || canvas.height !== shown.height) Object.assign(canvas, shown);
    drawSeen(context, view);
    return context.getImageData(0, 0, shown.width, shown.height).data;
  }

  /** The function of each pixel: that of the window around it. */
  fit({ luma, pixels, size }: Small): void {
    const count = luma.length;
    if (this.functions.length !== VALUES * count) {
      this.functions = new Float32Array(VALUES * count);
      this.planes = Array.from({ length: 5 }, () => new Float32Array(count));
    }
    const { functions } = this;
    const [middle, scale, product, colour, rows] = this.planes;
    for (let i = 0; i < count; i++) product[i] = luma[i] * luma[i];
    means(luma, size, rows, middle);
    means(product, size, rows, scale);
    for (let i = 0; i < count; i++) scale[i] = 1 / (scale[i] - middle[i] * middle[i] + EPS);
    for (let which = 0; which < 3; which++) {
      for (let i = 0, j = which; i < count; i++, j += 4) {
        colour[i] = pixels[j];
        product[i] = luma[i] * pixels[j];
      }
      means(colour, size, rows, colour);
      means(product, size, rows, product);
      for (let i = 0, j = which; i < count; i++, j += VALUES) {
        functions[j] = (product[i] - middle[i] * colour[i]) * scale[i];
        functions[j + 3] = colour[i] - functions[j] * middle[i];
      }
    }
    for (let i = VALUES - 1, j = 3; i < functions.length; i += VALUES, j += 4) functions[i] = pixels[j];
  }

  /** Between the pixels' middles the functions are bilinear. */
  private apply({ size, rim }: Small, shown: Size, part: Box, made: Uint8ClampedArray): void {
    const { functions, luma: guide } = this;
    const values = VALUES * size.width;
    const row = new Float32Array(values);
    const places = Array.from({ length: part.width }, (_, x) => between(part.left + x, shown.width, size.width, rim.width));
    const shares = Float32Array.from(places, ([, share]) => share);
    const cells: number[] = []; // where the pixels that lie between the same two of the output begin
    places.forEach(([first], x) => first !== places[x - 1]?.[0] && cells.push(x));
    for (let y = part.top, at = 0; y < part.top + part.height; y++) {
      const [above, below] = between(y, shown.height, size.height, rim.height);
      for (let j = 0, i = above * values; j < values; j++, i++)
        row[j] = functions[i] + below * (functions[i + values] - functions[i]);
      for (let cell = 0; cell < cells.length; cell++) {
        const i = VALUES * places[cells[cell]][0];
        const end = cell + 1 < cells.length ? cells[cell + 1] : part.width;
        // One by one, as arrays would take twice the time: red's, green's, blue's, and how opaque.
        const r = row[i], g = row[i + 1], b = row[i + 2], r0 = row[i + 3], g0 = row[i + 4], b0 = row[i + 5];
        const dr = row[i + 7] - r, dg = row[i + 8] - g, db = row[i + 9] - b;
        const dr0 = row[i + 10] - r0, dg0 = row[i + 11] - g0, db0 = row[i + 12] - b0;
        const alpha = row[i + 6], dAlpha = row[i + 13] - alpha;
        for (let x = cells[cell]; x < end; x++, at += 4) {
          const share = shares[x];
          const luma = guide[at >> 2];
          made[at] = (r + share * dr) * luma + r0 + share * dr0;
          made[at + 1] = (g + share * dg) * luma + g0 + share * dg0;
          made[at + 2] = (b + share * db) * luma + b0 + share * db0;
          made[at + 3] = alpha + share * dAlpha;
        }
      }
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

/** The mean of the window around every pixel; beyond the plane its edge goes on. `into` may be `plane`. */
function means(plane: Float32Array, { width, height }: Size, rows: Float32Array, into: Float32Array): void {
  const clamped = (at: number, last: number) => Math.max(0, Math.min(last, at));
  const edge = (start: number, x: number) => {
    for (let by = -RADIUS; by <= RADIUS; by++) rows[start + x] += plane[start + clamped(x + by, width - 1)];
  };
  rows.fill(0);
  for (let y = 0, start = 0; y < height; y++, start += width) {
    for (let x = 0; x < Math.min(RADIUS, width); x++) edge(start, x);
    for (let i = start + RADIUS; i < start + width - RADIUS; i++)
      rows[i] = plane[i - 2] + plane[i - 1] + plane[i] + plane[i + 1] + plane[i + 2];
    for (let x = Math.max(RADIUS, width - RADIUS); x < width; x++) edge(start, x);
  }
  for (let y = 0; y < height; y++) {
    const [a, b, c, d, e] = [-2, -1, 0, 1, 2].map((by) => width * clamped(y + by, height - 1));
    for (let x = 0, i = y * width; x < width; x++, i++)
      into[i] = (rows[a + x] + rows[b + x] + rows[c + x] + rows[d + x] + rows[e + x]) / 25;
  }
}
