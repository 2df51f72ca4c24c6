/** Where the network runs: WebGPU where the browser really gives it, else WASM. In the worker. */
import type * as Ort from "onnxruntime-web";
import { fetchFile, fetchPacked, type Report } from "./download";
import type { Backend, BackendChoice } from "./protocol";
import { strings } from "./strings";

const MOST_THREADS = 4; // a small network has no work for more
// The page and the camera need a core too: on two busy ones, two threads wait for each other and
// halve the frames.
const LEFT_FREE = 1;

const ASKED = { obstacle: strings.backend.asked, emulated: false };

export interface Runtime {
  ort: typeof Ort;
  gpu: boolean;
  threads: number;
  backend: Backend;
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
  const { obstacle, emulated } =
    choice.backend === "wasm" ? ASKED : await askForGpu(choice.backend === "webgpu");
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
  const backend = gpu ? onGpu(emulated) : onCpu(threads, obstacle);
  return { ort, gpu, threads, backend };
}

/** A file of the page, as its folder names it. */
function named(url: string, root: URL): string {
  return new URL(url, self.location.href).href.replace(root.href, "");
}

/** The same build without its GPU, once that has failed. */
export function withoutGpu(runtime: Runtime, reason: string): Runtime {
  return { ...runtime, gpu: false, backend: onCpu(runtime.threads, strings.backend.failed(reason)) };
}

function onGpu(emulated: boolean): Backend {
  const why = emulated ? strings.backend.emulated : strings.backend.card;
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

/** The adapter, and what keeps the network off WebGPU; null where nothing does. */
async function askForGpu(emulationToo: boolean): Promise<{ obstacle: string | null; emulated: boolean }> {
  const no = (obstacle: string) => ({ obstacle, emulated: false });
  if (!self.isSecureContext) return no(strings.backend.needsHttps);
  if (!("gpu" in navigator)) return no(strings.backend.noWebGpu);
  const adapter = await navigator.gpu.requestAdapter().catch(() => null);
  if (!adapter) return no(strings.backend.noCard);
  const emulated = adapter.info.isFallbackAdapter || adapter.info.architecture === "swiftshader";
  if (emulated && !emulationToo) return no(strings.backend.onlyEmulated);
  return { obstacle: null, emulated };
}
