/** Which part of a frame the network gets, and how large. Sides divide by what networks need. */
import type { Student } from "./manifest";
import type { Box, Size } from "./protocol";

export const STRIDE = 32; // what sides divide by
const LONG = 3; // times the short side: longer strips get more pixels along, so that some are left across
/** Pixels of the long side of a strip, of what fills a screen, and of the photo beside it. */
export const MOST = 2048;

/** The network's size for a picture: nearly of the picture's own shape, `side` pixels long. */
export function inputSize(frame: Size, side: number, student: Pick<Student, "fixed">): Size {
  if (student.fixed) return { height: student.fixed[0], width: student.fixed[1] };
  const shape = Math.max(frame.width, frame.height) / Math.min(frame.width, frame.height);
  const stretch = Math.sqrt(Math.max(1, shape / LONG)); // the number of pixels stays
  const long = stretch > 1 ? Math.min(MOST, multiple(side * stretch)) : side;
  const short = multiple(long / shape);
  return frame.width >= frame.height
    ? { width: long, height: short }
    : { width: short, height: long };
}

/** The size that a network has its colours from at `size`, of the same shape; null where it is its own. */
export function coloursSize(size: Size, student: Pick<Student, "fixed" | "colours_at">): Size | null {
  const long = Math.max(size.width, size.height);
  const { fixed, colours_at } = student;
  if (fixed || !colours_at || long <= colours_at) return null;
  const side = (own: number) => multiple((own * colours_at) / long);
  return { width: side(size.width), height: side(size.height) };
}

/** The side of a network whose output is so long, but no longer than the photo. */
export function screenSide(shown: number, photo: number): number {
  return Math.min(MOST, STRIDE * Math.ceil(Math.min(shown, photo) / STRIDE));
}

function multiple(pixels: number): number {
  return STRIDE * Math.max(1, Math.round(pixels / STRIDE));
}

/** Both sides made even: H.264 knows no others. */
export function even({ width, height }: Size): Size {
  const down = (pixels: number) => Math.max(2, pixels - (pixels % 2));
  return { width: down(width), height: down(height) };
}

/** Where a frame goes: the part of it that is seen, and the rims of the network's input around it, where their shapes differ. */
export interface Fit {
  crop: Box;
  rim: Size;
}

/** The whole picture; where its shape is not the input's, two edges have a rim. */
export function whole(frame: Size, size: Size): Fit {
  const scale = Math.min(size.width / frame.width, size.height / frame.height);
  const across = (pixels: number, most: number) =>
    Math.min(Math.floor((most - 1) / 2), Math.round((most - pixels * scale) / 2));
  return {
    crop: { left: 0, top: 0, width: frame.width, height: frame.height },
    rim: { width: across(frame.width, size.width), height: across(frame.height, size.height) },
  };
}

/** The middle of a picture, which fills the input. */
export function middle(frame: Size, size: Size): Fit {
  return { crop: centreCrop(frame, size), rim: { width: 0, height: 0 } };
}

/** The middle of a frame, in whole pixels, of this shape (width by height); all of it where that is null. */
export function filling(frame: Size, shape: number | null): Box {
  const { left, top, width, height } = centreCrop(frame, shape ? { width: shape, height: 1 } : frame);
  return { left: Math.round(left), top: Math.round(top), width: Math.round(width), height: Math.round(height) };
}

/** The largest middle part of a frame that has the shape of `size`. */
function centreCrop(frame: Size, size: Size): Box {
  const scale = Math.min(frame.width / size.width, frame.height / size.height);
  const [width, height] = [size.width * scale, size.height * scale];
  return { left: (frame.width - width) / 2, top: (frame.height - height) / 2, width, height };
}
