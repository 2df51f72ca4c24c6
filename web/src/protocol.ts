/** The messages between the page and its worker. */
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

/** What the address asks for; null: what fits. */
export interface BackendChoice {
  backend: "webgpu" | "wasm" | null;
  threads: number | null;
}

export interface OpenRequest {
  what: "open";
  student: Student;
  size: Size;
  choice: BackendChoice;
}

export interface InferRequest {
  what: "infer";
  frame: ImageBitmap;
  /** The part of the frame to stylise, mirrored from left to right or not. */
  crop: Box;
  mirror: boolean;
  /** Pixels at each edge of the network's input that mirror what lies inside of them. */
  rim: number;
  /** The bytes of an earlier result, to be written over. */
  spare: ArrayBuffer | null;
}

export type WorkerRequest = OpenRequest | InferRequest | { what: "last" };

/** Milliseconds: picture to planes, the network, planes to picture. */
export interface Times {
  prepare: number;
  run: number;
  finish: number;
}

export interface InferResult extends Size {
  /** The frame, given back, and what was asked for. */
  frame: ImageBitmap;
  crop: Box;
  mirror: boolean;
  rim: number;
  pixels: Uint8ClampedArray<ArrayBuffer>;
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
  open: Backend;
  infer: InferResult;
  last: LastTensors | null;
}
