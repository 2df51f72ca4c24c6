/** The worker: one question at a time, so that the page itself never waits for the network. */
import { fetchFile } from "./fetch";
import { Painter } from "./painter";
import type { Answers, Draw, Drawn, Open, Question } from "./protocol";
import { loadRuntime, withoutGpu, type Runtime } from "./runtime";

let runtime: Runtime | null = null;
let painter: Painter | null = null;
let order: Open | null = null;
const networks = new Map<string, ArrayBuffer>();

async function open(wanted: Open): Promise<Answers["open"]> {
  runtime ??= await loadRuntime(wanted.wish);
  const network = await fetchOnce(wanted.student.file);
  const opened = await openAnywhere(wanted, network);
  await painter?.close();
  [painter, order] = [opened, wanted];
  return runtime.backend;
}

/** On the GPU if that is chosen; where it fails, on the CPU from then on. */
async function openAnywhere(wanted: Open, network: ArrayBuffer): Promise<Painter> {
  if (runtime!.gpu) {
    try {
      return await Painter.open(wanted, runtime!, network);
    } catch (error) {
      runtime = withoutGpu(runtime!, firstLine(error));
    }
  }
  return Painter.open(wanted, runtime!, network);
}

async function draw(question: Draw): Promise<Drawn> {
  if (!painter) throw new Error("no student is open");
  try {
    return await painter.draw(question);
  } catch (error) {
    if (!runtime!.gpu) throw error;
    runtime = withoutGpu(runtime!, firstLine(error)); // a lost device: drivers do that
    painter = await Painter.open(order!, runtime, await fetchOnce(order!.student.file));
    return painter.draw(question);
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

async function answer(question: Question): Promise<[Answers[keyof Answers], Transferable[]]> {
  if (question.what === "open") return [await open(question), []];
  if (question.what === "last") return [painter?.last() ?? null, []];
  const drawn = await draw(question);
  return [drawn, [drawn.frame, drawn.pixels.buffer]];
}

let queue = Promise.resolve();
self.onmessage = ({ data }: MessageEvent<{ id: number; question: Question }>) => {
  queue = queue.then(async () => {
    try {
      const [reply, transfer] = await answer(data.question);
      self.postMessage({ id: data.id, reply }, { transfer });
    } catch (error) {
      self.postMessage({ id: data.id, error: firstLine(error) });
    }
  });
};
