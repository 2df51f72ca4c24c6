/** Inference as the page calls it; the worker does it. */
import type { Student } from "./manifest";
import type {
  Backend,
  BackendChoice,
  Box,
  InferResult,
  LastTensors,
  Size,
  WorkerReplies,
  WorkerRequest,
} from "./protocol";

interface Waiting {
  resolve: (reply: never) => void;
  reject: (error: Error) => void;
}

const NO_WORKER = "a part of the page did not load; reload it";

export class Engine {
  private readonly worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  private readonly waiting = new Map<number, Waiting>();
  private count = 0;
  private spare: ArrayBuffer | null = null;
  private opened = "";
  private failed = "";
  backend: Backend | null = null;

  constructor(private readonly choice: BackendChoice) {
    this.worker.onmessage = ({ data }) => {
      const { resolve, reject } = this.waiting.get(data.id)!;
      this.waiting.delete(data.id);
      if ("error" in data) reject(new Error(data.error));
      else resolve(data.reply as never);
    };
    this.worker.onerror = (event) => this.fail(event.message || NO_WORKER);
  }

  /** Load a student for a size, unless it is the one that is open; says where it runs. */
  async open(student: Student, size: Size): Promise<Backend> {
    const key = `${student.file} ${size.width} ${size.height}`;
    if (key !== this.opened || !this.backend) {
      this.backend = await this.ask({ what: "open", student, size, choice: this.choice }, []);
      this.opened = key;
    }
    return this.backend;
  }

  /** Stylise a part of a frame; the frame goes to the worker and comes back with the result. */
  async infer(frame: ImageBitmap, crop: Box, mirror = false, rim = 0): Promise<InferResult> {
    const transfer = this.spare ? [frame, this.spare] : [frame];
    const request = { what: "infer", frame, crop, mirror, rim, spare: this.spare } as const;
    this.spare = null;
    const result = await this.ask(request, transfer);
    this.backend = result.backend; // a GPU may get lost on the way
    return result;
  }

  /** Hand back a result's bytes once they are on the screen. */
  reuse(pixels: Uint8ClampedArray<ArrayBuffer>): void {
    this.spare = pixels.buffer;
  }

  last(): Promise<LastTensors | null> {
    return this.ask({ what: "last" }, []);
  }

  private ask<Q extends WorkerRequest>(request: Q, transfer: Transferable[]) {
    const id = this.count++;
    if (this.failed) return Promise.reject(new Error(this.failed));
    return new Promise<WorkerReplies[Q["what"]]>((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, request }, transfer);
    });
  }

  /** There is no worker: later requests would get no reply either. */
  private fail(reason: string): void {
    this.failed = reason;
    for (const { reject } of this.waiting.values()) reject(new Error(reason));
    this.waiting.clear();
  }
}
