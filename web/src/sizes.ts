/** The resolutions that may be picked. */
import type { Student } from "./manifest";

const ascending = (a: number, b: number) => a - b;
const SIZES = [128, 192, 256, 320, 384, 512];
const LARGER = [640, 768, 1024]; // of a student that is right there, too

/** The resolutions that a student knows, ascending. */
export function sizesOf({ fixed, side, told }: Student): number[] {
  const sizes = told ? [...SIZES, ...LARGER] : SIZES;
  return fixed ? [Math.max(...fixed)] : [...new Set([...sizes, side])].sort(ascending);
}
