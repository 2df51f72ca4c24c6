/**
 * A large picture in tiles that overlap by what a pixel depends on, and are blended where they meet:
 * distill.stylize's upscale=tiles (stylize/render.py), whose numbers these are. In the worker.
 */
import { STRIDE } from "./fit";
import type { Size } from "./protocol";
import { rounded } from "./resample";

const BLEND = 32; // pixels from one tile to the next
const MOST = 320; // pixels of overlap to a side at most, for a network that depends on the whole picture

/** A stretch of one side, and the weight of each of its pixels, 0 to 1. */
export interface Span {
  start: number;
  end: number;
  share: Float64Array;
}

/** Pixels on each side of a tile that its neighbour takes over or is blended with. */
export function margin(reach: number, side: number): number {
  // One cell of the deepest features more: a border pads every layer, which a change does not.
  const wanted = Math.ceil((reach + STRIDE + BLEND / 2) / STRIDE) * STRIDE;
  const quarter = Math.floor(side / 4);
  return Math.min(wanted, MOST, Math.floor(quarter / STRIDE) * STRIDE || quarter);
}

/**
 * The tiles along one side, each put over those before it: it fades in around the middle of what it
 * shares with the one before, and ends where the next one has taken over.
 */
export function spans(length: number, tile: number, margin: number): Span[] {
  if (length <= tile) return [{ start: 0, end: length, share: new Float64Array(length).fill(1) }];
  const last = length - tile;
  const starts: number[] = [];
  for (let start = 0; start < last; start += tile - 2 * margin) starts.push(start);
  starts.push(last);
  const between = starts.slice(1).map((start, i) => (starts[i] + tile + start) / 2);
  const middles = [-BLEND, ...between, length + BLEND];
  return starts.map((start, i) => {
    const share = Float64Array.from({ length: tile }, (_, j) => {
      const pixel = start + j + 0.5;
      if (pixel > middles[i + 1] + BLEND / 2) return 0;
      return Math.min(1, Math.max(0, (pixel - middles[i]) / BLEND + 0.5));
    });
    return { start, end: start + tile, share };
  });
}

/** A tile's RGBA bytes over those of the picture; what lies beyond it is left out. */
export function blend(
  tile: Uint8ClampedArray,
  [across, down]: [Span, Span],
  picture: Uint8ClampedArray,
  { width, height }: Size,
): void {
  const wide = across.end - across.start;
  for (let y = 0; y < down.share.length; y++) {
    const row = down.start + y;
    if (row >= height) break;
    for (let x = 0; x < wide; x++) {
      const column = across.start + x;
      if (column >= width) break;
      const share = rounded(255 * down.share[y] * across.share[x]);
      if (share === 0) continue;
      const [from, to] = [4 * (y * wide + x), 4 * (row * width + column)];
      for (let c = 0; c < 4; c++)
        picture[to + c] = (share * tile[from + c] + (255 - share) * picture[to + c]) / 255;
    }
  }
}
