/** A video file drawn whole, frame by frame, with its own times and its sound. */
import {
  MATROSKA,
  MP4,
  BlobSource,
  BufferTarget,
  Conversion,
  ConversionCanceledError,
  Input,
  Mp4OutputFormat,
  Output,
  QTFF,
  QUALITY_HIGH,
  WEBM,
  WebMOutputFormat,
  canEncodeVideo,
  getFirstEncodableVideoCodec,
  type VideoCodec,
  type VideoSample,
} from "mediabunny";
import type { Size } from "./protocol";
import { strings } from "./strings";

const LARGEST = 2048; // pixels of a frame's long side that the network's input is made from

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
 * The film of a video file, MP4 where the browser writes H.264, else WebM; null once `signal` is
 * aborted. `size` is even. Throws an Error in plain words where the browser cannot read or write it.
 */
export async function drawFilm(
  file: Blob,
  size: Size,
  draw: DrawFrame,
  report: Report,
  signal: AbortSignal,
): Promise<Drawn | null> {
  const { format, codec } = await kindOf(size);
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

/** What this browser writes at a size. MP4 plays everywhere. */
async function kindOf(size: Size) {
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
