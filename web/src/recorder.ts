/** Films what is shown, with sound where that is wanted and allowed. */
import { even } from "./fit";
import type { Size } from "./protocol";
import { strings } from "./strings";

// The first that the browser writes. MP4 plays everywhere; Firefox writes WebM alone.
const KINDS = [
  "video/mp4;codecs=avc1.42E01F,mp4a.40.2",
  "video/mp4;codecs=avc1.42E01F,opus",
  "video/webm;codecs=vp9,opus",
  "video/webm;codecs=vp8,opus",
  "video/webm",
];
const BITS = 6; // a second for each pixel of a frame: 1.6 Mbit/s at 512 × 512
const LEAST = 2_000_000; // bits a second
const PART = 1000; // ms between two parts that are handed out: a long film does not wait for its end

// Opacity goes into WebM alone, in a block beside each frame; of it the file says so (AlphaMode: 1).
const WITH_ALPHA = /^video\/webm;codecs=vp/;
const ALPHA_MODE = "\x53\xc0\x81\x01";
const HEAD = 4096; // bytes in which that stands

export function canRecord(): boolean {
  return kind() !== undefined && "captureStream" in HTMLCanvasElement.prototype;
}

function kind(clear = false): string | undefined {
  if (typeof MediaRecorder === "undefined") return undefined;
  const known = KINDS.filter((each) => MediaRecorder.isTypeSupported(each));
  return (clear && known.find((each) => WITH_ALPHA.test(each))) || known[0];
}

export class Recorder {
  /** Seconds so far. */
  get seconds(): number {
    return (performance.now() - this.begun) / 1000;
  }

  private readonly begun = performance.now();
  private readonly parts: Blob[] = [];
  private readonly ended: Promise<Blob>;

  private constructor(
    /** What is filmed: whatever is drawn in it. */
    readonly canvas: HTMLCanvasElement,
    private readonly recorder: MediaRecorder,
    private readonly sound: MediaStream | null,
  ) {
    recorder.ondataavailable = ({ data }) => this.parts.push(data);
    this.ended = new Promise((done, fail) => {
      recorder.onstop = () => done(new Blob(this.parts, { type: recorder.mimeType }));
      recorder.onerror = () => fail(new Error(strings.film.failed));
    });
    this.ended.catch(() => {}); // it is told to who asks for the film
    recorder.start(PART);
  }

  /**
   * Film pictures of this size, whose sides are made even; `clear`: with what is see-through in them, where
   * the browser can. `mute` is called where sound was wanted and there is none.
   */
  static async start(size: Size, clear: boolean, sound: boolean, mute: () => void): Promise<Recorder> {
    const canvas = Object.assign(document.createElement("canvas"), even(size));
    canvas.getContext("2d"); // a stream can only be taken of a canvas that has one
    const heard = sound ? await listen() : null;
    if (sound && !heard) mute();
    const stream = canvas.captureStream();
    for (const track of heard?.getTracks() ?? []) stream.addTrack(track);
    const videoBitsPerSecond = Math.max(LEAST, BITS * canvas.width * canvas.height);
    const recorder = new MediaRecorder(stream, { mimeType: kind(clear), videoBitsPerSecond });
    return new Recorder(canvas, recorder, heard);
  }

  /** The film. Throws an Error where the browser could not make it. */
  async stop(): Promise<Blob> {
    if (this.recorder.state !== "inactive") this.recorder.stop();
    for (const track of this.sound?.getTracks() ?? []) track.stop();
    return this.ended;
  }
}

/** Whether a film has what is see-through. */
export async function hasAlpha(film: Blob): Promise<boolean> {
  const head = new Uint8Array(await film.slice(0, HEAD).arrayBuffer());
  return String.fromCharCode(...head).includes(ALPHA_MODE);
}

async function listen(): Promise<MediaStream | null> {
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: true });
  } catch {
    return null; // refused, or no microphone: a silent film is better than none
  }
}
