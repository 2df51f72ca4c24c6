/** Which part of a frame the network gets, and how large. Sides divide by what networks need. */
import type { Student } from "./manifest";
import type { Box, Size } from "./protocol";

const STRIDE = 32;
const LONGEST = 3; // times the short side: a longer strip is cut

/** The network's size for a picture: a square, or (`whole`) nearly the picture's own shape. */
export function inputSize(frame: Size, side: number, student: Student, whole: boolean): Size {
  if (student.fixed) return { height: student.fixed[0], width: student.fixed[1] };
  if (!whole) return { width: side, height: side };
  const shape = Math.min(LONGEST, Math.max(1 / LONGEST, frame.width / frame.height));
  const short = Math.max(STRIDE, STRIDE * Math.round((side * Math.min(shape, 1 / shape)) / STRIDE));
  return shape >= 1 ? { width: side, height: short } : { width: short, height: side };
}

/**
 * Pixels at each edge of the input that are not shown: networks pad with zeros inside, and give a
 * rim of another colour. Half of what distill.stylize takes, since every pixel costs frames here.
 */
export const RIM = 8;

/** The largest middle part of a frame that has the shape of `size`. */
export function centreCrop(frame: Size, size: Size): Box {
  const scale = Math.min(frame.width / size.width, frame.height / size.height);
  const [width, height] = [size.width * scale, size.height * scale];
  return { left: (frame.width - width) / 2, top: (frame.height - height) / 2, width, height };
}
