/** An output at the pixels that it is seen at: by the graphics card where there is one. In the worker. */
import { Guided, type Small, type View } from "./guided";
import { GuidedGl } from "./guided_gl";
import type { InferResult, Size } from "./protocol";

const NONE: Size = { width: 0, height: 0 };
// Without a card, where each pixel costs frames: pixels of the long side of what moves.
const MOVING = 640;
// Times as large, from which the filter gives more of what moves than a canvas's own enlarging, which takes no time.
const WORTH = 4 / 3;

export class Enlarger {
  private readonly cpu = new Guided();
  private card: GuidedGl | null | undefined;

  /**
   * What of a result changes; null where what is shown is no larger than the output. Without a card no
   * more pixels are made than the photo has, or, unless it is `still`, than there is time for. Bytes are
   * written over `into` where it has their length.
   */
  enlarge(small: Small, view: View, shown: Size, still: boolean, into: ArrayBuffer | null): Partial<InferResult> | null {
    const long = ({ width, height }: Size) => Math.max(width, height);
    const { size, rim } = small;
    const inner = long({ width: size.width - 2 * rim.width, height: size.height - 2 * rim.height });
    if (long(shown) <= inner) return null;
    this.card ??= this.card === undefined ? cardOrNone() : null;
    const picture = this.card?.enlarge(small, view, shown);
    if (picture) return { picture };
    this.card = null;
    const most = Math.min(long(shown), long(view.crop), still ? Infinity : MOVING);
    if (most <= (still ? 1 : WORTH) * inner) return null;
    const side = (pixels: number) => Math.max(1, Math.round((pixels * most) / long(shown)));
    const [width, height] = [side(shown.width), side(shown.height)];
    const pixels = this.cpu.enlarge(small, view, { width, height }, into);
    return { pixels, width, height, rim: NONE };
  }
}

function cardOrNone(): GuidedGl | null {
  try {
    return new GuidedGl();
  } catch {
    return null;
  }
}
