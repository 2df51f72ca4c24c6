/** Where frames come from: the camera, a video file, or one picture. */
import { UNEDITED, stays, type Edit } from "./edit";
import { FINE } from "./planes";
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

const WHOLE_PAGE = import.meta.env.MODE !== "element"; // which edits nothing, to stay small
const LARGEST = 2048; // pixels of a picture's long side that are kept
// What is saved at its own size: most browsers draw so many pixels into one canvas, some phones' only the second.
const MOST_PIXELS = [5120 * 5120, 4096 * 4096];
const LONGEST = 16384;
const QUARTERS = [[1, 0, 0, 1], [0, 1, -1, 0], [-1, 0, 0, -1], [0, -1, 1, 0]] as const; // turns to the right
const LOOKED_AT = 512; // pixels of the long side in which what is see-through is looked for

export class Picture implements Source {
  readonly still = true;

  /** `full` is the size of the file's own picture; `clear`: parts of it are see-through. */
  private constructor(
    private readonly bitmap: ImageBitmap,
    readonly full: Size,
    readonly clear: boolean,
  ) {}

  /** Turned as its EXIF says, then as `edit` does. Throws where the browser cannot read it. */
  static async read(file: Blob, edit = UNEDITED): Promise<Picture> {
    const own = await (WHOLE_PAGE ? edited(file, edit) : createImageBitmap(file));
    const { width, height } = own;
    const most = Math.min(1, LARGEST / Math.max(width, height));
    const clear = isClear(own);
    return new Picture(await reduced(own, scaled(own, most)), { width, height }, clear);
  }

  next(): Promise<ImageBitmap> {
    return createImageBitmap(this.bitmap);
  }

  stop(): void {
    this.bitmap.close();
  }
}

/** A picture at the size that it is saved at; of a `clear` one what is half see-through keeps its colours. */
export async function readFull(file: Blob, edit: Edit, clear: boolean): Promise<ImageBitmap> {
  const own = await edited(file, edit, clear);
  return reduced(own, savedSize(own));
}

/** A file's picture, turned and cropped; no larger than can be saved where it is. */
async function edited(file: Blob, edit: Edit, clear = false): Promise<ImageBitmap> {
  const own = await createImageBitmap(file, { premultiplyAlpha: clear ? "none" : "default" });
  const { left, top, width, height } = stays(edit, own);
  if (!edit.turns && width === own.width && height === own.height) return own;
  const made = savedSize({ width, height });
  const canvas = new OffscreenCanvas(made.width, made.height);
  const context = canvas.getContext("2d", clear ? FINE : {})!;
  context.imageSmoothingQuality = "high";
  context.scale(made.width / width, made.height / height);
  const [wide, high] = edit.turns % 2 ? [own.height, own.width] : [own.width, own.height];
  context.translate(wide / 2 - left, high / 2 - top);
  const [a, b, c, d] = QUARTERS[edit.turns];
  context.transform(a, b, c, d, 0, 0);
  context.drawImage(own, -own.width / 2, -own.height / 2);
  own.close();
  return canvas.transferToImageBitmap();
}

/** The size that a picture is saved at: its own, or where that is more than can be saved, the largest that can. */
export function savedSize(own: Size): Size {
  const pixels = own.width * own.height;
  const most = pixels <= MOST_PIXELS[1] || !drawable(MOST_PIXELS[0]) ? MOST_PIXELS[1] : MOST_PIXELS[0];
  return scaled(own, Math.min(1, Math.sqrt(most / pixels), LONGEST / Math.max(own.width, own.height)));
}

function isClear(picture: ImageBitmap): boolean {
  const { width, height } = scaled(picture, Math.min(1, LOOKED_AT / Math.max(picture.width, picture.height)));
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true })!;
  context.drawImage(picture, 0, 0, width, height);
  return context.getImageData(0, 0, width, height).data.some((value, i) => i % 4 === 3 && value < 255);
}

const tried = new Map<number, boolean>();

/** Whether a canvas of so many pixels keeps its last one; tried once. */
function drawable(pixels: number): boolean {
  if (!tried.has(pixels)) tried.set(pixels, keepsLast(pixels));
  return tried.get(pixels)!;
}

function keepsLast(pixels: number): boolean {
  const last = Math.sqrt(pixels) - 1;
  try {
    const context = new OffscreenCanvas(last + 1, last + 1).getContext("2d", { willReadFrequently: true })!;
    context.fillRect(last, last, 1, 1);
    return context.getImageData(last, last, 1, 1).data[3] === 255;
  } catch {
    return false;
  }
}

function scaled({ width, height }: Size, scale: number): Size {
  const side = (pixels: number) => Math.max(1, Math.floor(pixels * scale + 1e-6));
  return { width: side(width), height: side(height) };
}

async function reduced(full: ImageBitmap, { width, height }: Size): Promise<ImageBitmap> {
  if (width === full.width && height === full.height) return full;
  const made = await createImageBitmap(full, { resizeWidth: width, resizeHeight: height, resizeQuality: "high" });
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
