/** Frames a second and milliseconds, over the last second or so. */
import { label } from "./dom";
import type { Times } from "./protocol";
import { strings } from "./strings";

const WINDOW = 1500; // ms
const PAUSE = 250; // ms between two changes of the text

interface Frame extends Times {
  at: number;
}

export interface Speed extends Times {
  fps: number;
  frames: number;
}

export class Meter {
  private frames: Frame[] = [];
  private total = 0;
  private shown = -Infinity;

  constructor(private readonly element: HTMLElement) {}

  add(times: Times, still: boolean): void {
    const at = performance.now();
    this.total += 1;
    this.frames.push({ at, ...times });
    this.frames = this.frames.filter((frame) => at - frame.at <= WINDOW);
    if (at - this.shown < PAUSE && !still) return;
    this.shown = at;
    const { fps, prepare, run, finish } = still ? { fps: 0, ...times } : this.speed();
    const ms = `${(prepare + run + finish).toFixed(0)} ms`;
    label(this.element, still || !fps ? ms : strings.speed(fps.toFixed(0), ms));
  }

  speed(): Speed {
    const { frames } = this;
    const span = frames.length > 1 ? frames[frames.length - 1].at - frames[0].at : 0;
    const mean = (key: keyof Times) => frames.reduce((sum, f) => sum + f[key], 0) / frames.length;
    const fps = span ? (1000 * (frames.length - 1)) / span : 0;
    const [prepare, run, finish, part] = [mean("prepare"), mean("run"), mean("finish"), mean("part")];
    return { fps, frames: this.total, prepare, run, finish, part };
  }

  /** Another source or style: older frames say nothing about it. */
  restart(): void {
    this.frames = [];
    this.shown = -Infinity;
  }
}
