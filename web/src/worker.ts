/** The worker: inference, one request at a time, so that the page itself never waits. */
import { fetchFile } from "./fetch";
import type {
  InferRequest,
  InferResult,
  OpenRequest,
  WorkerReplies,
  WorkerRequest,
} from "./protocol";
import { loadRuntime, withoutGpu, type Runtime } from "./runtime";
import { StudentSession } from "./student_session";

type Reply = WorkerReplies[keyof WorkerReplies];

let runtime: Runtime | null = null;
let student: StudentSession | null = null;
let opened: OpenRequest | null = null;
const networks = new Map<string, ArrayBuffer>();

async function open(wanted: OpenRequest): Promise<WorkerReplies["open"]> {
  runtime ??= await loadRuntime(wanted.choice);
  const network = await fetchOnce(wanted.student.file);
  const session = await openAnywhere(wanted, network);
  await student?.close();
  [student, opened] = [session, wanted];
  return runtime.backend;
}

/** On the GPU if that is chosen; where it fails, on the CPU from then on. */
async function openAnywhere(wanted: OpenRequest, network: ArrayBuffer): Promise<StudentSession> {
  if (runtime!.gpu) {
    try {
      return await StudentSession.open(wanted, runtime!, network);
    } catch (error) {
      runtime = withoutGpu(runtime!, firstLine(error));
    }
  }
  return StudentSession.open(wanted, runtime!, network);
}

async function infer(request: InferRequest): Promise<InferResult> {
  if (!student) throw new Error("no student is open");
  try {
    return await student.infer(request);
  } catch (error) {
    if (!runtime!.gpu) throw error;
    runtime = withoutGpu(runtime!, firstLine(error)); // a lost device: drivers do that
    student = await StudentSession.open(opened!, runtime, await fetchOnce(opened!.student.file));
    return student.infer(request);
  }
}

async function fetchOnce(file: string): Promise<ArrayBuffer> {
  const known = networks.get(file);
  if (known) return known;
  const network = await (await fetchFile(file, root())).arrayBuffer();
  networks.set(file, network);
  return network;
}

/** The page's folder: this script lies one below it. */
function root(): URL {
  return new URL("..", self.location.href);
}

function firstLine(error: unknown): string {
  return String(error instanceof Error ? error.message : error).split("\n")[0];
}

async function answer(request: WorkerRequest): Promise<[Reply, Transferable[]]> {
  if (request.what === "open") return [await open(request), []];
  if (request.what === "last") return [student?.last() ?? null, []];
  const result = await infer(request);
  return [result, [result.frame, result.pixels.buffer]];
}

let queue = Promise.resolve();
self.onmessage = ({ data }: MessageEvent<{ id: number; request: WorkerRequest }>) => {
  queue = queue.then(async () => {
    try {
      const [reply, transfer] = await answer(data.request);
      self.postMessage({ id: data.id, reply }, { transfer });
    } catch (error) {
      self.postMessage({ id: data.id, error: firstLine(error) });
    }
  });
};
