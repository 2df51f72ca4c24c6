/** The resolution: of what moves the largest that this machine keeps up with, of a picture the screen's. */
import { STRIDE } from "./fit";
import type { Times } from "./protocol";

const LIVE = 45; // ms that a frame may take: 20 a second, and some rest
const WARM = 3; // inferences after a change that say nothing yet: the browser compiles
const SEEN = 8; // frames by which a size is judged
const FAR = 2; // times as long as allowed: seen sooner
const ROOM = 0.95; // of the time allowed that a larger size may be expected to take
const WAIT = 10_000; // ms until a size that was too slow is tried again, one at a time; then twice as long
const DRAFT = 256; // pixels of a picture's side that is drawn at once

export class AutoSize {
  private times: number[] = [];
  private parts: number[] = []; // of those times, what a resolution does not change
  private skipped = 0;
  private tooSlow = Infinity; // pixels of a side that was tried
  private triedAt = 0; // ms, when it was
  private wait = WAIT;
  private reached = Infinity; // pixels of the side that was fast enough last
  private failed = Infinity; // pixels of one that did not go: what others made may take all memory
  private moving: number; // the side of frames, while a picture is shown

  /**
   * `sizes` ascending, of the student that draws; `side` is what it begins with; above `coloursAt` it
   * also draws at that size, for the colours. `screen` gives the side that fills the screen, `still` the
   * one at which pictures are drawn where that is none of the sizes.
   */
  constructor(
    private readonly sizes: readonly number[],
    public side: number,
    private readonly coloursAt: number | null,
    private readonly screen: () => number,
    private readonly still: (screen: number) => number | null,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.moving = sizes.includes(side) ? side : this.draft();
  }

  /** The side that something else is to be drawn at first: a picture in a draft. */
  begin(still: boolean): number {
    this.forget();
    return this.change(still ? Math.min(this.moving, this.draft()) : this.moving);
  }

  /** Inferences take another time from now on. */
  restart(): void {
    this.forget();
    this.change(this.side);
  }

  /** It cannot draw at this side, but did at another: from there on at most half as large. */
  cannot(side: number, did: number): number {
    this.failed = side;
    return this.change(did);
  }

  /** An inference at `side` is done; gives another side where that fits better. */
  take({ prepare, run, finish, part }: Times, still: boolean): number | null {
    const best = still ? this.largest() : this.fastEnough(prepare + run + finish, part);
    return best === null || best === this.side ? null : this.change(best);
  }

  /** However long it takes: it is looked at for longer. */
  private largest(): number {
    const wanted = this.still(this.screen()) ?? this.filling();
    return wanted < this.failed ? wanted : Math.max(this.side, STRIDE * Math.floor(this.failed / 2 / STRIDE));
  }

  /** Of the sizes the first that fills the screen. */
  private filling(): number {
    const screen = this.screen();
    return this.sizes.find((side) => side >= screen) ?? this.sizes.at(-1)!;
  }

  private draft(): number {
    return this.sizes.find((side) => side >= DRAFT) ?? this.sizes[0];
  }

  private fastEnough(took: number, part: number): number | null {
    if (this.skipped++ < WARM) return null;
    this.times = [...this.times, took].slice(-SEEN);
    this.parts = [...this.parts, part].slice(-SEEN);
    if (this.times.length < (took > FAR * LIVE ? WARM : SEEN)) return null;
    const usual = median(this.times);
    const fixed = Math.min(usual, median(this.parts));
    if (usual > LIVE) {
      if (this.side > this.reached) this.wait *= 2; // it was tried again, and in vain
      this.tooSlow = Math.min(this.tooSlow, this.side);
      this.triedAt = this.now();
    } else {
      this.reached = this.side;
      if (this.now() - this.triedAt >= this.wait) {
        this.tooSlow = this.sizes.find((side) => side > this.tooSlow) ?? Infinity;
        this.triedAt = this.now();
      }
    }
    const expected = (side: number) => fixed + ((usual - fixed) * this.pixels(side)) / this.pixels(this.side);
    const most = this.filling();
    const fitting = this.sizes.filter(
      (side) => side < Math.min(this.tooSlow, this.failed) && side <= most && expected(side) <= (side > this.side ? ROOM : 1) * LIVE,
    );
    return (this.moving = fitting.at(-1) ?? this.sizes[0]);
  }

  /** What an inference takes grows with them. */
  private pixels(side: number): number {
    const { coloursAt } = this;
    return side ** 2 + (coloursAt && side > coloursAt ? coloursAt ** 2 : 0);
  }

  private forget(): void {
    this.tooSlow = Infinity;
    this.wait = WAIT;
    this.reached = Infinity;
  }

  private change(side: number): number {
    this.times = [];
    this.parts = [];
    this.skipped = 0;
    return (this.side = side);
  }
}

function median(values: number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1];
}
