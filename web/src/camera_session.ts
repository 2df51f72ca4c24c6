/** The camera while it is wanted and something draws it; off otherwise, so that its light goes out. */
import type { Camera } from "./camera";
import { reason } from "./dom";
import type { Video } from "./sources";
import { strings } from "./strings";

const LOOK = 1000; // ms between two looks at a camera that should give frames
const PATIENCE = 3; // looks without a frame: it has stalled
const LONGEST = 30; // looks between two retries, at most; each waits twice as long as the last

export interface CameraScreen {
  /** Frames to draw, from now on. */
  start(video: Video): void;
  /** Nothing comes for now; what is drawn stays. */
  pause(): void;
  /** It cannot be opened, or has gone: it is wanted no more. */
  fail(why: string): void;
  /** It gives no frames, and is tried again. Null: it gives them again. */
  stall(why: string | null): void;
}

export class CameraSession {
  private wanted = false;
  private drawn = false;
  private attempt: AbortController | null = null;
  private patience = PATIENCE;

  constructor(
    private readonly camera: Camera,
    private readonly screen: CameraScreen,
  ) {}

  /** Whether the camera is wanted, though it may be off while nothing draws it. */
  get on(): boolean {
    return this.wanted;
  }

  want(on: boolean): void {
    if (on !== this.wanted) this.patience = PATIENCE;
    this.wanted = on;
    this.follow();
  }

  /** Whether its frames are on the screen: not in a hidden tab, not behind another view. */
  draw(on: boolean): void {
    this.drawn = on;
    this.follow();
  }

  /** The other camera; phones open one at a time. */
  flip(): void {
    this.camera.flip();
    this.close();
    this.follow();
  }

  private follow(): void {
    if (!this.wanted || !this.drawn) this.close();
    else if (!this.attempt) void this.open();
  }

  private close(): void {
    if (!this.attempt) return;
    this.attempt.abort();
    this.attempt = null;
    this.screen.stall(null);
    this.screen.pause();
  }

  private async open(): Promise<void> {
    const attempt = (this.attempt = new AbortController());
    const { signal } = attempt;
    try {
      const video = await this.camera.open(signal);
      const stall = () => this.screen.stall(strings.camera.stalled);
      video.track.addEventListener("ended", () => this.fail(strings.camera.lost), { signal });
      video.track.addEventListener("mute", stall, { signal });
      this.screen.start(video);
      this.watch(video, signal);
    } catch (error) {
      if (!signal.aborted) this.fail(reason(error));
    }
  }

  private fail(why: string): void {
    this.wanted = false;
    this.close();
    this.screen.fail(why);
  }

  /** Counts looks rather than time: a machine that slept, or was busy, is no stalled camera. */
  private watch(video: Video, signal: AbortSignal): void {
    let [seen, missed] = [video.arrived, 0];
    const timer = setInterval(() => {
      if (video.arrived > seen) {
        if (missed === 0 && seen > 0) this.patience = PATIENCE;
        [seen, missed] = [video.arrived, 0];
        return this.screen.stall(null);
      }
      missed += 1;
      if (missed >= PATIENCE) this.screen.stall(strings.camera.stalled);
      if (missed >= this.patience) this.retry();
    }, LOOK);
    signal.addEventListener("abort", () => clearInterval(timer));
  }

  private retry(): void {
    this.patience = Math.min(2 * this.patience, LONGEST);
    this.attempt?.abort();
    this.screen.pause();
    void this.open();
  }
}
