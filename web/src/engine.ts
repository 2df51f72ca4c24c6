/** Inference as the page calls it; the worker does it. */
import type { Student } from "./manifest";
import type {
  AdoptRequest, Backend, BackendChoice, BeginFullRequest, FileKind, Finder, FullLook, InferRequest, InferResult, LastTensors, Progress,
  Size, WorkerMessage, WorkerReplies, WorkerRequest,
} from "./protocol";
import { strings } from "./strings";

const NONE: Size = { width: 0, height: 0 };

interface Waiting {
  resolve: (reply: never) => void;
  reject: (error: Error) => void;
}

export class Engine {
  private readonly waiting = new Map<number, Waiting>();
  private count = 0;
  private spare: ArrayBuffer | null = null;
  private full: Promise<unknown> = Promise.resolve(); // the last picture at its own size: the worker draws one at once
  private opened = "";
  /** Why there is no worker any more: nothing helps but to load the page anew. */
  failed = "";
  backend: Backend | null = null;

  /** The runtime is on its way from now on, before anybody knows which student is wanted. */
  constructor(
    private readonly worker: Worker,
    choice: BackendChoice,
    progress: (progress: Progress) => void,
  ) {
    this.worker.onmessage = ({ data }: MessageEvent<WorkerMessage>) => {
      if ("progress" in data) return progress(data.progress);
      const { resolve, reject } = this.waiting.get(data.id)!;
      this.waiting.delete(data.id);
      if ("error" in data) reject(new Error(data.error));
      else resolve(data.reply as never);
    };
    this.worker.onerror = (event) => this.fail(event.message || strings.network.noWorker);
    // What is missing is said by `fetch`, which asks for it once more.
    this.ask({ what: "prepare", choice }, []).catch(() => {});
  }

  /** Bring a student's file and the runtime, while another one may go on working. */
  async fetch(student: Student): Promise<void> {
    await this.ask({ what: "fetch", student }, []);
  }

  /** Take a network that the user brought. Throws an Error that says why it cannot be a style. */
  adopt(wanted: Pick<AdoptRequest, "name" | "kind" | "bytes"> & Partial<AdoptRequest>): Promise<Student> {
    const request = { anySize: false, photo: null, said: {}, ...wanted, what: "adopt" } as const;
    return this.ask(request, [wanted.bytes, ...(request.photo ? [request.photo] : [])]);
  }

  /** A network that is not needed any more. */
  forget(file: string): void {
    this.ask({ what: "forget", file }, []).catch(() => {});
  }

  /** Bring a network that finds parts; from then on those can be drawn. */
  async bringFinder(finder: Finder, file: string): Promise<void> {
    await this.ask({ what: "bringFinder", finder, file }, []);
  }

  /** For good: what it holds is free, and who still waits is told. */
  dispose(): void {
    this.worker.terminate();
    this.fail(strings.network.noWorker);
  }

  /** Load a student for a size, unless it is the one that is open; says where it runs. */
  async open(student: Student, size: Size): Promise<Backend> {
    const key = `${student.file} ${size.width} ${size.height}`;
    if (key !== this.opened || !this.backend) {
      this.backend = await this.ask({ what: "open", student, size }, []);
      this.opened = key;
    }
    return this.backend;
  }

  /** Stylise a part of a frame; the frame goes to the worker and comes back with the result. */
  async infer(wanted: Pick<InferRequest, "frame" | "crop"> & Partial<InferRequest>): Promise<InferResult> {
    const { spare } = this;
    this.spare = null;
    const plain = { mirror: false, still: true, rim: NONE, shown: null, steady: 0, part: "everything", apart: null, behind: false, marks: false } as const;
    const request = { ...plain, ...wanted, what: "infer", spare } as const;
    const result = await this.ask(request, spare ? [wanted.frame, spare] : [wanted.frame]);
    this.backend = result.backend; // a GPU may get lost on the way
    return result;
  }

  /** Hand back a result's bytes once they are on the screen. */
  reuse(pixels: Uint8ClampedArray<ArrayBuffer>): void {
    this.spare = pixels.buffer;
  }

  /**
   * The file of a picture drawn at its own size, with nothing but what is `wanted`; null once `signal` is aborted.
   * The frame goes to the worker. Other requests are answered meanwhile, between two steps.
   */
  drawFull(...wanted: Parameters<Engine["drawAlone"]>): Promise<Blob | null> {
    const drawn = this.full.then(() => this.drawAlone(...wanted));
    this.full = drawn.catch(() => {});
    return drawn;
  }

  private async drawAlone(
    wanted: Pick<BeginFullRequest, "student" | "frame"> & Partial<BeginFullRequest>,
    kind: FileKind,
    signal: AbortSignal | null = null,
    look: FullLook = { split: 0, strength: 1 },
    report: (share: number) => void = () => {},
  ): Promise<Blob | null> {
    const plain = { mirror: false, part: "everything", apart: null, behind: null, stickers: [], side: null, middle: null, clear: false } as const;
    try {
      const steps = await this.ask({ ...plain, ...wanted, what: "beginFull" }, [wanted.frame]);
      for (let done = 0; done < steps && !signal?.aborted; done++) {
        await this.ask({ what: "stepFull" }, []);
        report((done + 1) / steps);
      }
      return signal?.aborted ? null : await this.ask({ what: "finishFull", look, kind }, []);
    } finally {
      this.ask({ what: "dropFull" }, []).catch(() => {});
    }
  }

  last(): Promise<LastTensors | null> {
    return this.ask({ what: "last" }, []);
  }

  /** Addresses of the files that the worker took. */
  files(): Promise<string[]> {
    return this.ask({ what: "files" }, []);
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
