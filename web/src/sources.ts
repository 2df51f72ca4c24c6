/** Where frames come from: the camera, a video file, or one picture. */
import type { Size } from "./protocol";

export interface Source {
  /** Whether every frame is the same. */
  readonly still: boolean;
  /** Whether it may be cut to the shape of the screen. */
  readonly fills?: boolean;
  /** A frame that was not given before; null once stopped. */
  next(): Promise<ImageBitmap | null>;
  stop(): void;
}

const LARGEST = 2048; // pixels of a picture's long side that are kept
// What is saved at its own size: most browsers draw so many pixels into one canvas, some phones' only the second.
const MOST_PIXELS = [5120 * 5120, 4096 * 4096];
const LONGEST = 16384;

export class Picture implements Source {
  readonly still = true;

  /** `full` is the size of the file's own picture. */
  private constructor(
    private readonly bitmap: ImageBitmap,
    readonly full: Size,
  ) {}

  /** Turned as its EXIF says. Throws where the browser cannot read it. */
  static async read(file: Blob): Promise<Picture> {
    const own = await createImageBitmap(file);
    const { width, height } = own;
    return new Picture(await reduced(own, () => LARGEST / Math.max(width, height)), { width, height });
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
  return reduced(await createImageBitmap(file), ({ width, height }) => {
    const most = width * height <= MOST_PIXELS[1] || !drawable(MOST_PIXELS[0]) ? MOST_PIXELS[1] : MOST_PIXELS[0];
    return Math.min(Math.sqrt(most / (width * height)), LONGEST / Math.max(width, height));
  });
}

/** Whether a canvas of so many pixels keeps its last one. */
function drawable(pixels: number): boolean {
  const last = Math.sqrt(pixels) - 1;
  try {
    const context = new OffscreenCanvas(last + 1, last + 1).getContext("2d", { willReadFrequently: true })!;
    context.fillRect(last, last, 1, 1);
    return context.getImageData(last, last, 1, 1).data[3] === 255;
  } catch {
    return false;
  }
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
  readonly fills = true;
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
