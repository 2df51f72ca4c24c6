/** The resolution that this machine keeps up with, found by what inferences took. */
import type { Times } from "./protocol";

const LIVE = 30; // ms that a frame of the camera may take: 30 a second, and some rest
const STILL = 400; // of a picture, which is looked at for longer
// The same where larger outputs are sharper, and not only finer: 20 frames a second, and some rest.
const SHARP_LIVE = 45;
const SHARP_STILL = 4000;
const WARM = 3; // inferences after a change that say nothing yet: the browser compiles
const SEEN = 8; // frames by which a size is judged
const ROOM = 0.8; // of the time allowed that a larger size may be expected to take

export class AutoSize {
  private times: number[] = [];
  private parts: number[] = []; // of those times, what a resolution does not change
  private skipped = 0;
  private still = false;
  private tooSlow = Infinity; // pixels of a side that was tried
  private moving: number; // the side of frames, while a picture is shown

  /**
   * `sizes` ascending, of the student that draws; `side` is what it begins with; above `coloursAt` it
   * also draws at that size, for the colours. `screen` gives the side that fills the screen, for a
   * student that is right at any: its pictures are drawn at that.
   */
  constructor(
    private readonly sizes: readonly number[],
    public side: number,
    private readonly coloursAt: number | null = null,
    private readonly screen: (() => number) | null = null,
  ) {
    this.moving = sizes.includes(side) ? side : sizes[0];
  }

  /** An inference at `side` is done; gives another side where that fits better. */
  take({ prepare, run, finish, part }: Times, still: boolean): number | null {
    if (still !== this.still) {
      this.restart(still);
      // A picture may have been drawn much larger than what moves can be.
      if (this.screen && !still && this.side !== this.moving) return (this.side = this.moving);
    }
    if (this.skipped++ < (still ? 1 : WARM)) return null;
    this.times.push(prepare + run + finish);
    this.parts.push(part);
    if (!still && this.times.length < SEEN) return null;
    const took = median(this.times);
    const fixed = Math.min(took, median(this.parts));
    const allowed = this.screen ? (still ? SHARP_STILL : SHARP_LIVE) : still ? STILL : LIVE;
    if (took > allowed) this.tooSlow = Math.min(this.tooSlow, this.side);
    const expected = (side: number) => fixed + ((took - fixed) * this.pixels(side)) / this.pixels(this.side);
    const most = still && this.screen ? this.screen() : Infinity;
    const sizes = most < Infinity ? [...this.sizes.filter((side) => side < most), most] : this.sizes;
    const fitting = sizes.filter(
      (side) => side < this.tooSlow && expected(side) <= (side > this.side ? ROOM : 1) * allowed,
    );
    const best = fitting.at(-1) ?? this.sizes[0];
    if (!still) this.moving = best;
    this.times = this.times.slice(-SEEN);
    this.parts = this.parts.slice(-SEEN);
    if (best === this.side) return null;
    this.side = best;
    this.restart(still);
    return best;
  }

  /** What an inference takes grows with them. */
  private pixels(side: number): number {
    const { coloursAt } = this;
    return side ** 2 + (coloursAt && side > coloursAt ? coloursAt ** 2 : 0);
  }

  private restart(still: boolean): void {
    if (still !== this.still) this.tooSlow = Infinity;
    this.still = still;
    this.times = [];
    this.parts = [];
    this.skipped = 0;
  }
}

function median(values: number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1];
}
