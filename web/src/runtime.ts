/** Where the network runs: WebGPU where the browser really gives it, else WASM. In the worker. */
import type * as Ort from "onnxruntime-web";
import { fetchFile, fetchPacked, type Report } from "./download";
import { decimal } from "./numbers";
import { TRIALS, type Backend, type BackendChoice } from "./protocol";
import { strings } from "./strings";

const MOST_THREADS = 4; // a small network has no work for more
// The page and the camera need a core too: on two busy ones, two threads wait for each other and
// halve the frames.
const LEFT_FREE = 1;

/** Milliseconds that a network took on the graphics card and on the CPU. */
export interface Trial {
  gpu: number;
  cpu: number;
}

interface Gpu {
  obstacle: string | null;
  emulated: boolean;
  /** Where the trial of this card is kept, and what it was; null: there was none. */
  card: string;
  trial: Trial | null;
}

export interface Runtime {
  ort: typeof Ort;
  gpu: boolean;
  threads: number;
  backend: Backend;
  /** The card that is yet to be timed beside the CPU; null: none. */
  untried: string | null;
}

/** One build of ONNX Runtime: addresses of its two files, and the module that loads them. */
export interface Build {
  loader: string;
  binary: string;
  load(): Promise<typeof Ort>;
}

export interface Builds {
  gpu: Build;
  cpu: Build;
  /** The folder that files are named from. */
  root: URL;
  /** Whether binaries lie there as NAME.gz too. */
  packed: boolean;
}

type Told = <T>(file: string, get: (report: Report) => Promise<T>) => Promise<T>;

/**
 * Load the one build of ONNX Runtime that is wanted here: its parts at once, each by our own fetch,
 * which names what is missing. `tell` reports those that are large.
 */
export async function loadRuntime(
  choice: BackendChoice,
  { root, packed, ...builds }: Builds,
  tell: Told,
): Promise<Runtime> {
  const asked = choice.backend === "webgpu";
  const { obstacle, emulated, card, trial } =
    choice.backend === "wasm" ? no(strings.backend.asked) : await askForGpu(asked);
  const gpu = obstacle === null;
  const { loader, binary, load } = gpu ? builds.gpu : builds.cpu;
  const fetchBinary = packed ? fetchPacked : fetchFile;
  const [ort, wasm] = await Promise.all([
    load(),
    tell(named(binary, root), (report) => fetchBinary(named(binary, root), root, report)),
    fetchFile(named(loader, root), root),
  ]);
  ort.env.logLevel = "error";
  ort.env.wasm.wasmPaths = { mjs: loader };
  ort.env.wasm.wasmBinary = await wasm.arrayBuffer();
  const threads = choice.threads ?? threadCount();
  ort.env.wasm.numThreads = threads;
  const backend = gpu ? onGpu(emulated, trial) : onCpu(threads, obstacle);
  return { ort, gpu, threads, backend, untried: gpu && !asked && !trial ? card : null };
}

/** The same build where it was the faster one in a trial, which is kept for the next visits. */
export async function afterTrial(runtime: Runtime, trial: Trial): Promise<Runtime> {
  const { untried, threads } = runtime;
  await caches.open(TRIALS).then((cache) => cache.put(untried!, Response.json(trial))).catch(() => {}); // a private window keeps nothing
  const gpu = trial.gpu <= trial.cpu;
  const backend = gpu ? onGpu(false, trial) : onCpu(threads, strings.backend.slower(decimal(trial.gpu), decimal(trial.cpu)));
  return { ...runtime, gpu, backend, untried: null };
}

/** A file of the page, as its folder names it. */
function named(url: string, root: URL): string {
  return new URL(url, self.location.href).href.replace(root.href, "");
}

/** The same build without its GPU, once that has failed. */
export function withoutGpu(runtime: Runtime, reason: string): Runtime {
  return { ...runtime, gpu: false, untried: null, backend: onCpu(runtime.threads, strings.backend.failed(reason)) };
}

function onGpu(emulated: boolean, trial: Trial | null): Backend {
  const card = trial ? strings.backend.faster(decimal(trial.gpu), decimal(trial.cpu)) : strings.backend.card;
  const why = emulated ? strings.backend.emulated : card;
  return { name: "WebGPU", threads: 1, why };
}

function onCpu(threads: number, obstacle: string): Backend {
  return { name: "WASM", threads, why: [obstacle, ...threadObstacle()].join("; ") };
}

function threadCount(): number {
  if (!self.crossOriginIsolated) return 1;
  return Math.max(1, Math.min((navigator.hardwareConcurrency || 2) - LEFT_FREE, MOST_THREADS));
}

function threadObstacle(): string[] {
  if (self.crossOriginIsolated) return [];
  if (!self.isSecureContext) return [strings.backend.oneThreadHttps];
  return [strings.backend.oneThreadHeaders];
}

/** What keeps the network off WebGPU; the obstacle is null where nothing does. */
async function askForGpu(asked: boolean): Promise<Gpu> {
  if (!self.isSecureContext) return no(strings.backend.needsHttps);
  if (!("gpu" in navigator)) return no(strings.backend.noWebGpu);
  const adapter = await navigator.gpu.requestAdapter().catch(() => null);
  if (!adapter) return no(strings.backend.noCard);
  const { vendor, architecture, device, isFallbackAdapter } = adapter.info;
  const emulated = isFallbackAdapter || architecture === "swiftshader";
  if (emulated && !asked) return no(strings.backend.onlyEmulated);
  const card = `/${encodeURIComponent([vendor, architecture, device, navigator.userAgent].join())}`;
  const kept = asked ? undefined : await caches.open(TRIALS).then((cache) => cache.match(card)).catch(() => undefined);
  const trial: Trial | null = kept ? await kept.json() : null;
  const slower = trial && trial.cpu < trial.gpu ? strings.backend.slower(decimal(trial.gpu), decimal(trial.cpu)) : null;
  return { obstacle: slower, emulated, card, trial };
}

function no(obstacle: string): Gpu {
  return { obstacle, emulated: false, card: "", trial: null };
}
