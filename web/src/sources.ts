/** Where frames come from: the camera, a video file, or one picture. */
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

/** The newest frame of what plays; older ones that nobody took are gone. */
export class Video implements Source {
  readonly still = false;
  /** Frames that arrived so far. */
  arrived = 0;
  private fresh = false;
  private stopped = false;
  private wake: (() => void) | null = null;

  /** `end` lets go of what the video plays. */
  constructor(
    private readonly video: HTMLVideoElement,
    private readonly end: () => void,
  ) {
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
    this.end();
    this.video.srcObject = null;
  }

  private watch(): void {
    if (this.stopped) return;
    const arrive = () => {
      this.arrived += 1;
      this.fresh = true;
      this.wake?.();
      this.wake = null;
      this.watch();
    };
    if ("requestVideoFrameCallback" in this.video) this.video.requestVideoFrameCallback(arrive);
    else requestAnimationFrame(arrive);
  }
}

/** What a camera shows at the moment. */
export class CameraVideo extends Video {
  readonly track: MediaStreamTrack;

  constructor(video: HTMLVideoElement, stream: MediaStream) {
    super(video, () => stream.getTracks().forEach((track) => track.stop()));
    this.track = stream.getVideoTracks()[0];
  }
}

/** A video file, played over and over without its sound. Throws where the browser cannot play it. */
export async function play(file: Blob): Promise<Video> {
  const video = document.createElement("video");
  const src = URL.createObjectURL(file);
  const end = () => {
    video.removeAttribute("src");
    video.load(); // else the file would stay open
    URL.revokeObjectURL(src);
  };
  Object.assign(video, { muted: true, playsInline: true, loop: true, src });
  try {
    await video.play();
  } catch (error) {
    end();
    throw error;
  }
  return new Video(video, end);
}
