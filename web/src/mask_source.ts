/** What finds a part of a picture: a network of MediaPipe's, and what is made of its answer. */
import type { Box } from "./protocol";

export const SIDE = 256; // pixels of a mask, which covers what is seen of a frame, whatever its shape

/** What is looked at: a part of a frame, mirrored from left to right or not. */
export interface View {
  frame: ImageBitmap;
  crop: Box;
  mirror: boolean;
  /** Nothing moves: there is time to look closer. */
  still: boolean;
}

export interface MaskSource {
  /** Up to what value of the mask nothing is drawn, and from what value on all is. */
  readonly none: number;
  readonly whole: number;
  /** Whether the network runs, and answers a black picture with numbers. */
  runs(): Promise<boolean>;
  /**
   * SIDE × SIDE values, row by row, which the next call writes over. `photo`: the view squeezed to
   * that square, planes R, G, B in [0, 1].
   */
  find(photo: Float32Array, view: View): Promise<Float32Array>;
}

/** What a network looks at is drawn here, a square. */
export function square(side: number): OffscreenCanvasRenderingContext2D {
  const options = { willReadFrequently: true, alpha: false } as const;
  const context = new OffscreenCanvas(side, side).getContext("2d", options)!;
  context.imageSmoothingQuality = "high";
  return context;
}
