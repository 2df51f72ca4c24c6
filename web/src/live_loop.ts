/** The photo view's loop: the newest frame, stylised, shown. There is no queue. */
import { ChosenStudent, type Choice } from "./chosen_student";
import type { Lines } from "./dom";
import type { Engine } from "./engine";
import { filling, inputSize, middle, whole, type Fit } from "./fit";
import type { Meter } from "./meter";
import type { Backend, Blend, Box, InferResult, Part, Size, Times } from "./protocol";
import type { Source } from "./sources";
import { strings } from "./strings";
import type { Viewer } from "./viewer";

// What a frame is shown as before anybody knows which student will draw: whole.
const UNKNOWN = { student: { fixed: null }, side: 256 };

export class LiveLoop {
  mirror = false;
  /** How much of the last result stays where nothing moves; of camera and videos alone. */
  steady = 0;
  /** What of a picture is stylised; parts only once the engine has what finds them. */
  part: Part = "everything";
  /** Width by height that the camera's picture is cut to; null: it is not. */
  shape: number | null = null;
  /** How faces are drawn by themselves, and whether people are told from what is behind them; likewise. */
  apart: Blend | null = null;
  behind = false;
  /** Whether faces' marks are told, for what they wear. */
  marks = false;
  /** Called with every result, and whether it is of a still picture. */
  onDrawn: ((result: InferResult, still: boolean) => void) | null = null;
  /** Called with what is shown from now on, before any of it is. */
  onSource: ((source: Source) => void) | null = null;
  /** Called with what an inference took, and what it was of. */
  onTimes: ((times: Times, drawn: Choice, still: boolean) => void) | null = null;
  working = false; // something waits for inference, or is in it
  private readonly chosen: ChosenStudent;
  private source: Source | null = null;
  private active = true;
  private changed = false;
  private readonly waiting: (() => void)[] = []; // for this view to be in front

  /** `show` is told where another student draws than the one that was chosen; `first` null: later. */
  constructor(
    private readonly engine: Engine,
    private readonly viewer: Viewer,
    private readonly meter: Pick<Meter, "add" | "restart">,
    private readonly onBackend: (backend: Backend) => void,
    show: (choice: Choice) => void,
    private first: Choice | null,
    lines?: Lines,
  ) {
    this.chosen = new ChosenStudent(engine, () => this.again(), show, lines);
    if (first) this.chosen.choose(first);
  }

  /** What draws; null until the first student is there. */
  get now(): Choice | null {
    return this.chosen.now;
  }

  /** For good: its source too. */
  stop(): void {
    this.use(null);
    this.chosen.stop();
  }

  use(source: Source | null): void {
    this.source?.stop();
    this.source = null; // nothing is drawn before it is known how
    if (source) this.onSource?.(source);
    this.source = source;
    this.again();
  }

  choose(choice: Choice): void {
    this.chosen.choose(choice);
  }

  pause(paused: boolean): void {
    if (this.active === !paused) return;
    this.active = !paused;
    if (this.active) for (const wake of this.waiting.splice(0)) wake();
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
    while (this.active && this.source && (this.changed || !this.source.still)) {
      this.changed = false;
      try {
        await this.step(this.source);
      } catch (error) {
        if (this.changed) continue; // its frame is gone
        this.changed = this.chosen.failed(error);
        if (!this.changed) break;
      }
    }
    this.working = false;
  }

  /** One frame; the photo alone where no student is there yet. */
  private async step(source: Source): Promise<void> {
    const frame = await source.next();
    if (!frame) return;
    const choice = this.chosen.now;
    const drawing = fit(frame, choice ?? this.first ?? UNKNOWN, source.still, source.fills ? this.shape : null);
    if (!choice || !this.viewer.drawn) this.preview(source, frame, drawing.crop);
    if (!choice) return frame.close();
    const result = await this.infer(frame, drawing, choice, source.still ? 0 : this.steady, source.still);
    if (source === this.source && this.active) {
      this.show(result, source.still, source.still);
      this.chosen.ran(choice);
      this.onTimes?.(result.times, choice, source.still);
      this.onDrawn?.(result, source.still);
    }
    this.onBackend(result.backend);
    this.giveBack(result);
  }

  /**
   * Stylise and show a frame of somebody else's, while no source is in use; in a view that is not
   * in front, once it is again. `fresh`: it has nothing to do with the one before. Throws where no
   * student is there, or where it cannot run.
   */
  async draw(frame: ImageBitmap, fresh: boolean): Promise<void> {
    while (!this.active) await new Promise<void>((wake) => this.waiting.push(wake));
    const choice = this.chosen.now;
    if (!choice) throw new Error(strings.network.noStudent);
    const result = await this.infer(frame, fit(frame, choice, false), choice, fresh ? 0 : this.steady, false);
    this.show(result, false, fresh);
    this.giveBack(result);
  }

  private async infer(
    frame: ImageBitmap,
    { size, crop, rim }: Drawing,
    { student }: Choice,
    steady: number,
    still: boolean,
  ): Promise<InferResult> {
    this.onBackend(await this.engine.open(student, size));
    const { mirror, part, apart, behind, marks } = this;
    const shown = this.viewer.shown(crop);
    return this.engine.infer({ frame, crop, mirror, still, rim, shown, steady, part, apart, behind, marks });
  }

  private show(result: InferResult, still: boolean, fresh: boolean): void {
    this.viewer.show(result, fresh);
    this.meter.add(result.times, still);
  }

  private giveBack({ frame, pixels }: InferResult): void {
    frame.close();
    this.engine.reuse(pixels);
  }

  private preview(source: Source, frame: ImageBitmap, crop: Box): void {
    if (source === this.source && this.active) this.viewer.preview(frame, crop, this.mirror);
  }
}

/** The network's size for a frame, and which part of the frame goes where in it. */
interface Drawing extends Fit {
  size: Size;
}

/** A network of one size would show what moves small, between bars: it gets the middle. */
function fit(frame: Size, { student, side }: Choice | typeof UNKNOWN, still: boolean, shape: number | null = null): Drawing {
  const seen = filling(frame, shape);
  const size = inputSize(seen, side, student);
  const { crop, rim } = student.fixed && !still ? middle(seen, size) : whole(seen, size);
  return { size, rim, crop: { ...crop, left: seen.left + crop.left, top: seen.top + crop.top } };
}
