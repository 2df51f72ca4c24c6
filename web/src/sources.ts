/** Where frames come from: the camera, a video file, or one picture. */
import type { Size } from "./protocol";

export interface Source {
  /** Whether every frame is the same. */
  readonly still: boolean;
  /** A frame that was not given before; null once stopped. */
  next(): Promise<ImageBitmap | null>;
  stop(): void;
}

const LARGEST = 2048; // pixels of a picture's long side that are kept
// What is saved at its own size: phones' browsers draw no more pixels than that into one canvas.
const MOST_PIXELS = 4096 * 4096;
const LONGEST = 16384;

export class Picture implements Source {
  readonly still = true;

  private constructor(private readonly bitmap: ImageBitmap) {}

  /** Turned as its EXIF says. Throws where the browser cannot read it. */
  static async read(file: Blob): Promise<Picture> {
    return new Picture(
      await reduced(await createImageBitmap(file), ({ width, height }) => LARGEST / Math.max(width, height)),
    );
  }

  next(): Promise<ImageBitmap> {
    return createImageBitmap(this.bitmap);
  }

  stop(): void {
    this.bitmap.close();
  }
}

/** A picture at its own size, or where that is more than can be saved, at the largest that can. */
export async function readFull(file: Blob): Promise<ImageBitmap> {
  return reduced(await createImageBitmap(file), ({ width, height }) =>
    Math.min(Math.sqrt(MOST_PIXELS / (width * height)), LONGEST / Math.max(width, height)),
  );
}

async function reduced(full: ImageBitmap, most: (size: Size) => number): Promise<ImageBitmap> {
  const scale = most(full);
  if (scale >= 1) return full;
  const side = (pixels: number) => Math.max(1, Math.floor(pixels * scale + 1e-6));
  const [resizeWidth, resizeHeight] = [side(full.width), side(full.height)];
  const made = await createImageBitmap(full, { resizeWidth, resizeHeight, resizeQuality: "high" });
  full.close();
  return made;
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

  /** The frame at this moment, whoever else takes it. */
  now(): Promise<ImageBitmap> {
    return createImageBitmap(this.video);
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
