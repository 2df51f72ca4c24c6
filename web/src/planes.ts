/** Between a frame, a canvas's bytes and a network's planes; nothing is allocated here. */
import type { Box, InferResult } from "./protocol";

export const LUMA = [0.299, 0.587, 0.114];

/**
 * For a canvas of what is see-through: it keeps colours times their opacity, and in bytes little is left of those
 * that are hardly seen. Browsers without such numbers take bytes.
 */
export const FINE: CanvasRenderingContext2DSettings & { colorType: string } = { colorType: "float16" };

const UNIT = Float32Array.from({ length: 256 }, (_, value) => value / 255);

/** What is seen of a frame, over a box of a canvas (all of it); `behind` what is see-through. */
export function drawSeen(
  context: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D,
  { frame, crop, mirror }: { frame: CanvasImageSource } & Pick<InferResult, "crop" | "mirror">,
  { left, top, width, height }: Box = { left: 0, top: 0, width: context.canvas.width, height: context.canvas.height },
  behind = "white",
): void {
  const { canvas } = context;
  context.fillStyle = behind;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.setTransform(mirror ? -1 : 1, 0, 0, 1, mirror ? canvas.width : 0, 0);
  context.drawImage(frame, crop.left, crop.top, crop.width, crop.height, left, top, width, height);
  context.resetTransform();
}

/** RGBA bytes as float32 planes R, G, B in [0, 1]; what is see-through must be blended before. */
export function toPlanes(rgba: Uint8ClampedArray, planes: Float32Array): void {
  const count = rgba.length >> 2;
  const blue = 2 * count;
  for (let i = 0, j = 0; i < count; i++, j += 4) {
    planes[i] = UNIT[rgba[j]];
    planes[count + i] = UNIT[rgba[j + 1]];
    planes[blue + i] = UNIT[rgba[j + 2]];
  }
}

/** Planes R, G, B and, of 4 `channels`, alpha as RGBA bytes: the array itself clamps and rounds. */
export function toBytes(planes: Float32Array, channels: 1 | 3 | 4, rgba: Uint8ClampedArray): void {
  const count = rgba.length >> 2;
  const blue = 2 * count;
  const alpha = 3 * count;
  for (let i = 0, j = 0; i < count; i++, j += 4) {
    rgba[j] = planes[i] * 255;
    rgba[j + 1] = planes[count + i] * 255;
    rgba[j + 2] = planes[blue + i] * 255;
    rgba[j + 3] = channels === 4 ? planes[alpha + i] * 255 : 255;
  }
}

/** The luma of planes R, G, B, written over `luma`. */
export function lumaOf(planes: Float32Array, luma: Float32Array = new Float32Array(planes.length / 3)): Float32Array {
  const { length } = luma;
  const [red, green, blue] = LUMA;
  for (let i = 0; i < length; i++) luma[i] = red * planes[i] + green * planes[length + i] + blue * planes[2 * length + i];
  return luma;
}
