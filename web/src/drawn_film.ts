/** A video file drawn whole, frame by frame, with its own times and its sound. */
import {
  MATROSKA, MP4, QTFF, QUALITY_HIGH, WEBM, BlobSource, BufferTarget, CanvasSource, Conversion, ConversionCanceledError, CustomVideoEncoder,
  EncodedPacket, Input, Mp4OutputFormat, Output, WebMOutputFormat, canEncodeVideo, getFirstEncodableVideoCodec, registerEncoder,
  type VideoCodec, type VideoSample,
} from "mediabunny";
import { filling } from "./fit";
import type { Size } from "./protocol";
import { strings } from "./strings";

const LARGEST = 2048; // pixels of a frame's long side that the network's input is made from
const WAITING = 4; // frames at an encoder

/** How far it is: the share of the film's length, 0 to 1. */
export type Report = (share: number) => void;

export interface Drawn {
  film: Blob;
  frames: number;
  /** Whether the file had sound that the film has not: the browser cannot turn it into its kind. */
  silent: boolean;
}

/** Draws a frame into a canvas that it keeps, of the film's size. */
export type DrawFrame = (frame: ImageBitmap) => Promise<HTMLCanvasElement>;

/**
 * The film of a video file, MP4 where the browser writes H.264, else WebM, as `clear` ones are, with what is
 * see-through in them; null once `signal` is aborted. `size` is even. Throws an Error in plain words where the
 * browser cannot read or write it.
 */
export async function drawFilm(
  file: Blob,
  size: Size,
  clear: boolean,
  draw: DrawFrame,
  report: Report,
  signal: AbortSignal,
): Promise<Drawn | null> {
  const { format, codec } = await kindOf(size, clear);
  const input = new Input({ source: new BlobSource(file), formats: [MP4, QTFF, WEBM, MATROSKA] });
  const output = new Output({ format, target: new BufferTarget() });
  let frames = 0;
  const process = async (sample: VideoSample) => {
    const canvas = await draw(await createImageBitmap(upright(sample)));
    frames += 1;
    return canvas;
  };
  try {
    const conversion = await Conversion.init({
      input,
      output,
      tracks: "primary",
      video: {
        codec,
        alpha: clear && format instanceof WebMOutputFormat ? "keep" : "discard",
        quality: QUALITY_HIGH,
        forceTranscode: true,
        allowTransformationMetadata: false,
        process,
        processedWidth: size.width,
        processedHeight: size.height,
      },
      showWarnings: false,
    });
    const lost = conversion.discardedTracks.map(({ track }) => track.type);
    if (!conversion.isValid || lost.includes("video")) throw new Error(strings.video.unreadable);
    conversion.onProgress = (share) => report(share);
    signal.addEventListener("abort", () => void conversion.cancel());
    if (signal.aborted) return null;
    await conversion.execute();
    const film = new Blob([output.target.buffer!], { type: await output.getMimeType() });
    return { film, frames, silent: lost.includes("audio") };
  } catch (error) {
    if (signal.aborted || error instanceof ConversionCanceledError) return null;
    throw error;
  } finally {
    input.dispose();
  }
}

const RATE = 30; // frames a second of a wipe
const LENGTH = 4; // seconds
// When how much of the drawing is seen, in shares of the length and the width; between them it glides.
const WIPED = [[0, 0], [0.15, 0], [0.5, 1], [0.7, 1], [0.9, 0.5], [1, 0.5]];

/** A film of a photo that the drawing is drawn over, from the left, and back by half; both fill `size` by their middles. */
export async function wipeFilm(
  photo: ImageBitmap,
  drawing: HTMLCanvasElement,
  size: Size,
  report: Report,
): Promise<Pick<Drawn, "film" | "frames">> {
  const { format, codec } = await kindOf(size, false);
  const output = new Output({ format, target: new BufferTarget() });
  const { width, height } = size;
  const context = Object.assign(document.createElement("canvas"), size).getContext("2d")!;
  context.imageSmoothingQuality = "high";
  const source = new CanvasSource(context.canvas, { codec, quality: QUALITY_HIGH });
  output.addVideoTrack(source, { frameRate: RATE });
  await output.start();
  const frames = RATE * LENGTH;
  const crop = filling(photo, width / height);
  const put = (picture: CanvasImageSource, share: number) => {
    const [cut, seen] = [width * share, crop.width * share];
    if (cut) context.drawImage(picture, crop.left, crop.top, seen, crop.height, 0, 0, cut, height);
  };
  context.fillStyle = "white";
  for (let frame = 0; frame < frames; frame++) {
    const share = wiped(frame / (frames - 1));
    put(photo, 1);
    put(drawing, share);
    if (share > 0 && share < 1) context.fillRect(width * share - 2, 0, 4, height);
    await source.add(frame / RATE, 1 / RATE);
    report((frame + 1) / frames);
  }
  await output.finalize();
  return { film: new Blob([output.target.buffer!], { type: await output.getMimeType() }), frames };
}

function wiped(at: number): number {
  const next = Math.max(1, WIPED.findIndex(([time]) => time >= at));
  const [[from, before], [to, after]] = WIPED.slice(next - 1, next + 1);
  const share = (at - from) / (to - from);
  return before + (after - before) * share * share * (3 - 2 * share);
}

/** What this browser writes at a size. MP4 plays everywhere, but knows no opacity. */
async function kindOf(size: Size, clear: boolean) {
  const webm = clear ? await getFirstEncodableVideoCodec(["vp9", "vp8"], size) : null;
  if (webm) return { format: new WebMOutputFormat(), codec: webm };
  if (await canEncodeVideo("avc", size)) return { format: new Mp4OutputFormat(), codec: "avc" as VideoCodec };
  const codec = await getFirstEncodableVideoCodec(["vp9", "vp8", "av1"], size);
  if (!codec) throw new Error(strings.video.unwritable);
  return { format: new WebMOutputFormat(), codec };
}

/** A frame as it is seen: turned as the file says, its pixels square. */
function upright(sample: VideoSample): OffscreenCanvas {
  const scale = Math.min(1, LARGEST / Math.max(sample.displayWidth, sample.displayHeight));
  const side = (pixels: number) => Math.max(1, Math.round(pixels * scale));
  const canvas = new OffscreenCanvas(side(sample.displayWidth), side(sample.displayHeight));
  sample.draw(canvas.getContext("2d")!, 0, 0, canvas.width, canvas.height);
  return canvas;
}

interface Opacity {
  frame: VideoFrame;
  options: VideoEncoderEncodeOptions;
}

/**
 * Frames and their opacity, as a film of greys beside that of colours. mediabunny's own encoder parts them in a
 * worker made of text, which the page's policy forbids.
 */
class ClearEncoder extends CustomVideoEncoder {
  private readonly context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })!;
  private readonly opacities: Opacity[] = []; // of frames whose colours are on their way
  private readonly drawn: { colours: EncodedVideoChunk; meta?: EncodedVideoChunkMetadata }[] = [];
  private colours!: VideoEncoder;
  private greys!: VideoEncoder;

  static override supports(_codec: VideoCodec, { alpha }: VideoEncoderConfig): boolean {
    return alpha === "keep";
  }

  init(): void {
    const encoder = (output: EncodedVideoChunkOutputCallback) => {
      const made = new VideoEncoder({ output, error: (error) => this.onError(error) });
      made.configure({ ...this.config, alpha: "discard" });
      return made;
    };
    this.greys = encoder((chunk) => {
      const alpha = new Uint8Array(chunk.byteLength);
      chunk.copyTo(alpha);
      const { colours, meta } = this.drawn.shift()!;
      this.onPacket(EncodedPacket.fromEncodedChunk(colours, { alpha }), meta);
    });
    this.colours = encoder((colours, meta) => {
      this.drawn.push({ colours, meta });
      const { frame, options } = this.opacities.shift()!;
      this.greys.encode(frame, { ...options, keyFrame: colours.type === "key" }); // players seek in both alike
      frame.close();
    });
  }

  async encode(sample: VideoSample, options: VideoEncoderEncodeOptions): Promise<void> {
    const { context } = this;
    const [width, height] = [sample.displayWidth, sample.displayHeight];
    Object.assign(context.canvas, { width, height }); // cleared, too
    sample.draw(context, 0, 0);
    const { data } = context.getImageData(0, 0, width, height);
    const about = { codedWidth: width, codedHeight: height, timestamp: sample.microsecondTimestamp, duration: sample.microsecondDuration };
    const grey = new Uint8Array(1.5 * width * height).fill(128); // both sides are even
    for (let i = 0; i < width * height; i++) grey[i] = data[4 * i + 3];
    this.opacities.push({ frame: new VideoFrame(grey, { ...about, format: "I420" }), options });
    const frame = new VideoFrame(data, { ...about, format: "RGBX" });
    this.colours.encode(frame, options);
    frame.close();
    if (this.colours.encodeQueueSize >= WAITING) await new Promise((done) => this.colours.addEventListener("dequeue", done, { once: true }));
  }

  async flush(): Promise<void> {
    await this.colours.flush();
    await this.greys.flush();
  }

  close(): void {
    for (const encoder of [this.colours, this.greys]) if (encoder.state !== "closed") encoder.close();
    for (const { frame } of this.opacities) frame.close();
  }
}

registerEncoder(ClearEncoder);
