/** The photo view's loop: the newest frame, stylised, shown. There is no queue. */
import { label, reason, say } from "./dom";
import type { Engine } from "./engine";
import { centreCrop, inputSize, RIM } from "./fit";
import type { Student } from "./manifest";
import type { Meter } from "./meter";
import type { Backend } from "./protocol";
import type { Source } from "./sources";
import type { Viewer } from "./viewer";

const WARM = 4; // inferences of a still picture: the first is slow, while the browser compiles

export class LiveLoop {
  mirror = false;
  private source: Source | null = null;
  private active = true;
  private changed = false;
  working = false; // something waits for inference, or is in it
  private runs = 0;
  private good: { student: Student; side: number } | null = null;

  constructor(
    private readonly engine: Engine,
    private readonly viewer: Viewer,
    private readonly meter: Meter,
    private readonly onBackend: (backend: Backend) => void,
    private readonly onReturn: (student: Student, side: number) => void,
    private student: Student,
    private side: number,
  ) {}

  get camera(): boolean {
    return this.source !== null && !this.source.still;
  }

  use(source: Source | null): void {
    this.source?.stop();
    this.source = source;
    this.again();
  }

  choose(student: Student, side: number): void {
    [this.student, this.side] = [student, side];
    this.again();
  }

  pause(paused: boolean): void {
    this.active = !paused;
    this.again();
  }

  /** Once more, now with other settings. */
  again(): void {
    this.changed = true;
    this.meter.restart();
    if (!this.working) void this.work();
  }

  private async work(): Promise<void> {
    this.working = true;
    while (this.active && this.source && this.unfinished(this.source)) {
      if (this.changed) this.runs = 0;
      this.changed = false;
      this.runs += 1;
      try {
        await this.step(this.source);
      } catch (error) {
        if (this.changed) continue; // its frame is gone
        say(`${this.student.name} cannot run at ${this.side}: ${reason(error)}.`);
        if (!this.goBack()) break;
      }
    }
    this.working = false;
  }

  /** To what ran last, if that is something else: the camera goes on. */
  private goBack(): boolean {
    const { good } = this;
    this.good = null;
    if (!good || (good.student === this.student && good.side === this.side)) return false;
    [this.student, this.side, this.changed] = [good.student, good.side, true];
    this.onReturn(good.student, good.side);
    return true;
  }

  private unfinished(source: Source): boolean {
    return this.changed || !source.still || this.runs < WARM;
  }

  private async step(source: Source): Promise<void> {
    const frame = await source.next();
    if (!frame) return;
    const { student, side, mirror } = this;
    const size = inputSize(frame, side, student, source.still);
    this.onBackend(await this.engine.open(student, size));
    const shown = { width: size.width - 2 * RIM, height: size.height - 2 * RIM };
    const result = await this.engine.infer(frame, centreCrop(frame, shown), mirror, RIM);
    if (source === this.source && this.active) {
      this.viewer.show(result);
      this.meter.add(result.times, source.still);
      label(document.getElementById("tag")!, student.name);
      this.good = { student, side };
    }
    this.onBackend(result.backend);
    result.frame.close();
    this.engine.reuse(result.pixels);
  }
}
