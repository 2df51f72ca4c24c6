/** Where frames come from: the camera, or one picture. */
export interface Source {
  /** Whether every frame is the same. */
  readonly still: boolean;
  /** A frame that was not given before; null once stopped. */
  next(): Promise<ImageBitmap | null>;
  stop(): void;
}

const LARGEST = 2048; // pixels of a picture's long side that are kept

export class Picture implements Source {
  readonly still = true;

  private constructor(private readonly bitmap: ImageBitmap) {}

  /** Turned as its EXIF says. Throws where the browser cannot read it. */
  static async read(file: Blob): Promise<Picture> {
    const full = await createImageBitmap(file);
    const scale = LARGEST / Math.max(full.width, full.height);
    if (scale >= 1) return new Picture(full);
    const resizeWidth = Math.max(1, Math.round(full.width * scale));
    const resizeHeight = Math.max(1, Math.round(full.height * scale));
    const options = { resizeWidth, resizeHeight, resizeQuality: "high" } as const;
    return new Picture(await createImageBitmap(full, options));
  }

  next(): Promise<ImageBitmap> {
    return createImageBitmap(this.bitmap);
  }

  stop(): void {
    this.bitmap.close();
  }
}

/** The camera's newest frame; older ones that nobody took are gone. */
export class Video implements Source {
  readonly still = false;
  private fresh = false;
  private stopped = false;
  private wake: (() => void) | null = null;

  constructor(private readonly video: HTMLVideoElement) {
    this.watch();
  }

  async next(): Promise<ImageBitmap | null> {
    if (!this.fresh && !this.stopped) await new Promise<void>((wake) => (this.wake = wake));
    this.fresh = false;
    return this.stopped ? null : createImageBitmap(this.video);
  }

  stop(): void {
    this.stopped = true;
    this.wake?.();
    const stream = this.video.srcObject as MediaStream | null;
    for (const track of stream?.getTracks() ?? []) track.stop();
    this.video.srcObject = null;
  }

  private watch(): void {
    if (this.stopped) return;
    const arrive = () => {
      this.fresh = true;
      this.wake?.();
      this.wake = null;
      this.watch();
    };
    if ("requestVideoFrameCallback" in this.video) this.video.requestVideoFrameCallback(arrive);
    else requestAnimationFrame(arrive);
  }
}
