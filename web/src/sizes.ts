/** The resolutions that may be picked. */
import type { Student } from "./manifest";

const ascending = (a: number, b: number) => a - b;
const SIZES = [128, 192, 256, 320, 384, 512];
const LARGER = [640, 768, 1024]; // of a student that is right there, too

const MOST_TOLD = 1536; // of a still picture, see LIMIT_TOLD of full_picture.ts

/** The side at which a still picture is drawn that is to fill so many pixels; null where the student's own list says. */
export function stillSide({ fixed, told, file }: Student, screen: number): number | null {
  if (fixed || file.startsWith("own:")) return null; // what others made may take seconds, or all memory
  return told ? Math.min(screen, MOST_TOLD) : screen;
}

/** The resolutions that a student knows, ascending. */
export function sizesOf({ fixed, side, told }: Student): number[] {
  const sizes = told ? [...SIZES, ...LARGER] : SIZES;
  return fixed ? [Math.max(...fixed)] : [...new Set([...sizes, side])].sort(ascending);
}
