/** The messages between the page and its worker. */
import type { Convention } from "./conventions";
import type { Student } from "./manifest";

export interface Size {
  width: number;
  height: number;
}

export interface Box extends Size {
  left: number;
  top: number;
}

/** Where the network runs, and why there. */
export interface Backend {
  name: "WebGPU" | "WASM";
  threads: number;
  why: string;
}

/** A cache: what a network took on the graphics card and on the CPU, by card and browser. */
export const TRIALS = "distill-lens-trials";

/** What the address asks for; null: what fits. */
export interface BackendChoice {
  backend: "webgpu" | "wasm" | null;
  threads: number | null;
  /** The folder of ONNX Runtime's files, where the page does not carry its own. */
  runtime?: string;
}

export interface OpenRequest {
  what: "open";
  student: Student;
  size: Size;
}

/** What of a picture is drawn; the rest stays as the photo has it. */
export type Part = "everything" | "people" | "background" | "faces";

/** The networks that find parts. */
export type Finder = "people" | "faces";

/** By which network a part is found; null: by none. */
export const FOUND_BY: Record<Part, Finder | null> = {
  everything: null,
  people: "people",
  background: "people",
  faces: "faces",
};

/** What stands behind people in the place of their own background, with a colour of CSS; "clear": nothing. */
export const BACKDROPS = ["blurred", "colour", "clear"] as const;
export type Backdrop = { kind: (typeof BACKDROPS)[number]; colour: string };

/** How faces drawn by themselves go into the picture: fading alone, or in the colours of what is around them. */
export const BLENDS = ["feathered", "poisson"] as const;
export type Blend = (typeof BLENDS)[number];

/** A face drawn by itself, a square with or without a soft edge, and the box where it goes: shares of what is shown. */
export type DrawnFace = { picture: ImageBitmap; box: Box };

/** Marks of a face, as shares of what is seen; left and right are those of who looks out of the picture. */
export const MARKS = ["right_eye", "left_eye", "nose", "mouth", "right_ear", "left_ear"] as const;
export type Mark = (typeof MARKS)[number];
export type FaceMarks = Record<Mark, readonly [number, number]>;

/** A picture that faces wear, and where marks of the wearer's face lie in it, in its pixels. */
export interface Sticker {
  picture: ImageBitmap;
  anchors: Partial<FaceMarks>;
}

export interface InferRequest {
  what: "infer";
  frame: ImageBitmap;
  /** The part of the frame to stylise, mirrored from left to right or not. */
  crop: Box;
  mirror: boolean;
  /** Whether it is a picture, which may take its time, and no frame of something that moves. */
  still: boolean;
  /** Pixels at the edges of the network's input that mirror what lies inside of them. */
  rim: Size;
  /** The screen's pixels that the crop fills, to which a smaller output is enlarged; null: as it comes. */
  shown: Size | null;
  /** How much of the result before stays where nothing moves, 0 to below 1. */
  steady: number;
  part: Part;
  /** How faces drawn by themselves go into the picture, null: there are none; whether people are told from what is behind them. */
  apart: Blend | null;
  behind: boolean;
  /** Whether to return the face landmarks. */
  marks: boolean;
  /** The bytes of an earlier result, to be written over. */
  spare: ArrayBuffer | null;
}

export interface AdoptRequest {
  what: "adopt";
  name: string;
  kind: Student["kind"];
  bytes: ArrayBuffer;
  /** Whether the one size that exported files name is to be struck out, where the network lets it. */
  anySize: boolean;
  /** By which is found how the network takes and gives pictures; null: as ours. */
  photo: ImageBitmap | null;
  /** What the user says of that. */
  said: Partial<Convention>;
}

/** A picture to be made at its own size; what steps there are comes back. */
export interface BeginFullRequest {
  what: "beginFull";
  student: Student;
  frame: ImageBitmap;
  mirror: boolean;
  part: Part;
  apart: Blend | null;
  behind: Backdrop | null;
  stickers: readonly Sticker[];
  /** Pixels of the long side that the network draws, to be enlarged guided by the photo; null: all. */
  side: number | null;
  /** Pixels of width and height in its middle that are wanted; null: all. */
  middle: Size | null;
  /** Whether what is see-through in the frame is so in the file. */
  clear: boolean;
}

/** How a picture is looked at: the photo's share of its width on the left, the rest's strength. */
export interface FullLook {
  split: number;
  strength: number;
}

/** How large strokes are in a saved picture: as on the screen, or as fine as the network draws its own size. */
export const STROKES = ["shown", "fine"] as const;
export type Strokes = (typeof STROKES)[number];

/** How a picture becomes a file; `quality` (0 to 1) is JPEG's. */
export interface FileKind {
  type: "image/jpeg" | "image/png";
  quality: number;
}

export type WorkerRequest =
  | { what: "prepare"; choice: BackendChoice }
  | { what: "fetch"; student: Student }
  | AdoptRequest
  | { what: "forget"; file: string }
  | { what: "bringFinder"; finder: Finder; file: string }
  | OpenRequest
  | InferRequest
  | BeginFullRequest
  | { what: "stepFull" }
  | { what: "finishFull"; look: FullLook; kind: FileKind }
  | { what: "dropFull" }
  | { what: "last" }
  | { what: "files" };

/** How far a file is, in bytes; `total` null where the host does not say. */
export interface Progress {
  file: string;
  loaded: number;
  total: number | null;
  over: boolean;
}

/** Milliseconds: picture to planes, the network, planes to picture. */
export interface Times {
  prepare: number;
  run: number;
  finish: number;
  /** Of them all, what is the same at every resolution: finding a part, enlarging. */
  part: number;
}

export interface InferResult extends Size {
  /** The frame, given back, and what was asked for. */
  frame: ImageBitmap;
  crop: Box;
  mirror: boolean;
  rim: Size;
  /** What the pixels are opaque in, where that is not everything. */
  part?: Part;
  /** Whether any of what the part is told by was found, where the part is not everything. */
  found?: boolean;
  /** Faces drawn by themselves, the largest last; null: there was no time for any. */
  faces?: DrawnFace[] | null;
  /** Marks of its faces, the surest first, where they were asked for. */
  marks?: FaceMarks[];
  /** Opacity of people, where they are told from what is behind them; null: a picture without any. */
  people?: ImageBitmap | null;
  pixels: Uint8ClampedArray<ArrayBuffer>;
  /** The same enlarged by a graphics card, without a rim, where there is one. */
  picture?: ImageBitmap;
  /** Pixels that the network drew, without its rim, of what is now enlarged. */
  drawn: Size;
  times: Times;
  backend: Backend;
}

/** The network's last input (1, 3, height, width) and output (1, channels, height, width). */
export interface LastTensors extends Size {
  channels: 3 | 4;
  input: Float32Array;
  output: Float32Array;
}

export interface WorkerReplies {
  prepare: void;
  fetch: void;
  adopt: Student;
  forget: void;
  bringFinder: void;
  open: Backend;
  infer: InferResult;
  beginFull: number;
  stepFull: void;
  finishFull: Blob;
  dropFull: void;
  last: LastTensors | null;
  /** Addresses of the files that the worker took. */
  files: string[];
}

export type WorkerMessage =
  | { id: number; reply: WorkerReplies[keyof WorkerReplies] }
  | { id: number; error: string }
  | { progress: Progress };
