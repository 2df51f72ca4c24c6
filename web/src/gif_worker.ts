/** Writes a GIF that plays there and back, so that its end meets its beginning. */
import { applyPalette, GIFEncoder, quantize } from "gifenc";

export interface GifRequest {
  /** RGBA bytes, each as long as the others; and for how many ms each is shown. */
  frames: ArrayBuffer[];
  delays: number[];
  width: number;
  height: number;
}

const HALF = 128; // opacity from which on a pixel is seen: GIFs know no more
const LOOKED_AT = 200_000; // pixels that the 256 colours are chosen by

self.onmessage = ({ data }: MessageEvent<GifRequest>) => {
  const gif = write(data);
  self.postMessage(gif, { transfer: [gif.buffer] });
};

function write({ frames, delays, width, height }: GifRequest): Uint8Array<ArrayBuffer> {
  const pictures = frames.map((frame) => new Uint8ClampedArray(frame));
  // One set of colours for all frames: with one for each, what stands still would shimmer. Its last one is
  // see-through, where anything is.
  const clear = pictures.some((picture) => picture.some((value, at) => at % 4 === 3 && value < HALF));
  const palette = quantize(sample(pictures), clear ? 255 : 256);
  const transparentIndex = palette.length;
  const indexed = pictures.map((picture) => {
    const index = applyPalette(picture, palette);
    for (let i = 0; clear && i < index.length; i++) if (picture[4 * i + 3] < HALF) index[i] = transparentIndex;
    return index;
  });
  if (clear) palette.push([0, 0, 0]);
  const gif = GIFEncoder();
  const forth = [...indexed.keys()];
  for (const at of [...forth, ...forth.slice(1, -1).reverse()]) {
    gif.writeFrame(indexed[at], width, height, { palette: at ? undefined : palette, delay: delays[at], transparent: clear, transparentIndex });
  }
  gif.finish();
  return gif.bytes();
}

/** Every n-th pixel of all frames that is seen. */
function sample(pictures: Uint8ClampedArray[]): Uint8ClampedArray {
  const pixels = pictures.reduce((sum, { length }) => sum + length / 4, 0);
  const step = Math.max(1, Math.ceil(pixels / LOOKED_AT)) | 1; // odd: not the same columns all the way
  const taken: number[] = [];
  for (const picture of pictures)
    for (let at = 0; at < picture.length; at += 4 * step)
      if (picture[at + 3] >= HALF) taken.push(...picture.subarray(at, at + 4));
  return Uint8ClampedArray.from(taken);
}
