/** A face's outline, from forehead to chin and from cheek to cheek, laid into a mask. */
import { POINTS, type Face } from "./blazeface";
import { SIDE } from "./mask_source";
import type { Size } from "./protocol";

// In sides of the detector's box, which ends at the chin and in the middle of the forehead: chosen
// by looking at some hundred portraits.
const ABOVE = 0.06; // of the box's middle
const ACROSS = 0.47; // half of the oval's width
const ALONG = 0.62; // half of its height
const SOFT = 0.08; // share of the oval to each side of its edge in which opacity falls

/** In pixels of a picture; `angle` by which the face leans, clockwise. */
export interface Oval {
  x: number;
  y: number;
  across: number;
  along: number;
  angle: number;
}

/** The oval of a face whose places are in pixels. */
export function ovalOf({ places }: Face): Oval {
  const side = (places[2] - places[0] + places[3] - places[1]) / 2;
  const angle = leaning(places);
  return {
    x: (places[0] + places[2]) / 2 + ABOVE * side * Math.sin(angle),
    y: (places[1] + places[3]) / 2 - ABOVE * side * Math.cos(angle),
    across: ACROSS * side,
    along: ALONG * side,
    angle,
  };
}

/**
 * By the eyes' line, and by the line from between them to the mouth: each counts by its length, as
 * in profile the eyes lie so near each other that their line says little.
 */
function leaning(places: Float32Array): number {
  const { leftEye, rightEye, mouth } = POINTS;
  const [left, right, lips] = [leftEye, rightEye, mouth].map((at) => [places[at], places[at + 1]]);
  const eyes = [right[0] - left[0], right[1] - left[1]];
  const down = [lips[0] - (left[0] + right[0]) / 2, lips[1] - (left[1] + right[1]) / 2];
  return Math.atan2(eyes[1] - down[0], eyes[0] + down[1]);
}

export function mirrored(oval: Oval, width: number): Oval {
  return { ...oval, x: width - oval.x, angle: -oval.angle };
}

/** Opacity of the ovals in a picture of this size, 0 to 1, over SIDE × SIDE pixels of a mask. */
export function paint(ovals: Oval[], { width, height }: Size, mask: Float32Array): void {
  mask.fill(0);
  for (const { x, y, across, along, angle } of ovals) {
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    // No edge is sharper than two pixels of the mask.
    const soft = Math.max(SOFT, Math.max(width, height) / SIDE / across);
    const reach = (1 + soft) * Math.max(across, along);
    const [left, right] = span(x, reach, width);
    const [top, bottom] = span(y, reach, height);
    for (let row = top; row < bottom; row++) {
      const down = ((row + 0.5) * height) / SIDE - y;
      for (let column = left; column < right; column++) {
        const over = ((column + 0.5) * width) / SIDE - x;
        const out = Math.hypot((over * cos + down * sin) / across, (down * cos - over * sin) / along);
        const share = Math.min(1, Math.max(0, (1 + soft - out) / (2 * soft)));
        const at = SIDE * row + column;
        mask[at] = Math.max(mask[at], share * share * (3 - 2 * share));
      }
    }
  }
}

/** The mask's pixels that a stretch around a place may cover. */
function span(middle: number, reach: number, side: number): [number, number] {
  const pixel = (at: number) => Math.min(SIDE, Math.max(0, (at * SIDE) / side));
  return [Math.floor(pixel(middle - reach)), Math.ceil(pixel(middle + reach))];
}
