/** The resolutions that may be picked, and what picks one. */
import { AutoSize } from "./auto_size";
import type { Student } from "./manifest";

const ascending = (a: number, b: number) => a - b;
const SIZES = [128, 192, 256, 320, 384, 512];
const LEAST = 192; // that is chosen by itself: below, styles look like something else
const LARGER = [640, 768, 1024]; // of a student that is right there, too

/** Pixels of the long side up to which distill.stylize draws a picture at its own size. */
export const LIMIT = 1024;
/** Likewise of a student with global statistics: its lines are thin in larger pictures, its colours farther from the teacher's. */
export const LIMIT_TOLD = 1536;

/** The side at which a still picture is drawn that is to fill so many pixels; null for one of one size. */
export function stillSide({ fixed, told }: Student, screen: number): number | null {
  if (fixed) return null;
  return told ? Math.min(screen, LIMIT_TOLD) : screen;
}

/** The resolutions that a student knows, ascending. */
export function sizesOf({ fixed, side, told }: Student): number[] {
  const sizes = told ? [...SIZES, ...LARGER] : SIZES;
  return fixed ? [Math.max(...fixed)] : [...new Set([...sizes, side])].sort(ascending);
}

/** What chooses one for a student, beginning with `side`; `screen` gives the side that fills the screen. */
export function automatic(student: Student, side: number, screen: () => number): AutoSize {
  const sizes = sizesOf(student).filter((each) => student.fixed || each >= LEAST);
  return new AutoSize(sizes, side, student.colours_at, screen, (pixels) => stillSide(student, pixels));
}
