/** How a picture is turned and cropped before it is drawn and saved; its file stays as it is. */
import { filling } from "./fit";
import type { Box, Size } from "./protocol";

/** Quarters to the right, then the part that stays, in shares of what was turned. */
export interface Edit {
  turns: number;
  box: Box;
}

export const UNEDITED: Edit = { turns: 0, box: { left: 0, top: 0, width: 1, height: 1 } };

/** A quarter further to the right. */
export function turned({ turns, box: { left, top, width, height } }: Edit): Edit {
  return { turns: (turns + 1) % 4, box: { left: 1 - top - height, top: left, width: height, height: width } };
}

/** Of what stays now, the part `seen`, in shares of it; the view may be mirrored. */
export function cropped({ turns, box }: Edit, seen: Box, mirror: boolean): Edit {
  const left = mirror ? 1 - seen.left - seen.width : seen.left;
  const part = { left: box.left + left * box.width, top: box.top + seen.top * box.height };
  return { turns, box: { ...part, width: seen.width * box.width, height: seen.height * box.height } };
}

/** The middle of `size` in another shape, width by height, in shares of it. */
export function shaped(size: Size, shape: number): Box {
  const { left, top, width, height } = filling(size, shape);
  return { left: left / size.width, top: top / size.height, width: width / size.width, height: height / size.height };
}

/** Width and height, in pixels, of what stays of a picture of that size, and where it begins once that is turned. */
export function stays({ turns, box }: Edit, { width, height }: Size): Box {
  const [wide, high] = turns % 2 ? [height, width] : [width, height];
  const side = (share: number, pixels: number) => Math.max(1, Math.round(share * pixels));
  return { left: Math.round(box.left * wide), top: Math.round(box.top * high), width: side(box.width, wide), height: side(box.height, high) };
}
