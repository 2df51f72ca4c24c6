/** What the page and its worker say to each other. */
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
export interface Wish {
  backend: "webgpu" | "wasm" | null;
  threads: number | null;
}

export interface Open {
  what: "open";
  student: Student;
  size: Size;
  wish: Wish;
}

export interface Draw {
  what: "draw";
  frame: ImageBitmap;
  /** The part of the frame to draw, mirrored from left to right or not. */
  crop: Box;
  mirror: boolean;
  /** Pixels at each edge of the network's input that mirror what lies inside of them. */
  rim: number;
  /** The bytes of an earlier drawing, to be written over. */
  spare: ArrayBuffer | null;
}

export type Question = Open | Draw | { what: "last" };

/** Milliseconds: picture to planes, the network, planes to picture. */
export interface Times {
  prepare: number;
  run: number;
  finish: number;
}

export interface Drawn extends Size {
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
export interface Last extends Size {
  channels: 3 | 4;
  input: Float32Array;
  output: Float32Array;
}

export interface Answers {
  open: Backend;
  draw: Drawn;
  last: Last | null;
}
