/** Where the network runs: WebGPU where the browser really gives it, else WASM. In the worker. */
import type * as Ort from "onnxruntime-web";
import gpuLoader from "onnxruntime-web/ort-wasm-simd-threaded.asyncify.mjs?url";
import gpuBinary from "onnxruntime-web/ort-wasm-simd-threaded.asyncify.wasm?url";
import cpuLoader from "onnxruntime-web/ort-wasm-simd-threaded.mjs?url";
import cpuBinary from "onnxruntime-web/ort-wasm-simd-threaded.wasm?url";
import type { Backend, BackendChoice } from "./protocol";

const MOST_THREADS = 4; // a small network has no work for more
// The page and the camera need a core too: on two busy ones, two threads wait for each other and
// halve the frames.
const LEFT_FREE = 1;

const ASKED = { obstacle: "as the address asks for", emulated: false };

export interface Runtime {
  ort: typeof Ort;
  gpu: boolean;
  threads: number;
  backend: Backend;
}

/** Load the one build of ONNX Runtime that is wanted here. */
export async function loadRuntime(choice: BackendChoice): Promise<Runtime> {
  const { obstacle, emulated } =
    choice.backend === "wasm" ? ASKED : await askForGpu(choice.backend === "webgpu");
  const gpu = obstacle === null;
  const ort = gpu ? await import("onnxruntime-web/webgpu") : await import("onnxruntime-web/wasm");
  ort.env.logLevel = "error";
  ort.env.wasm.wasmPaths = gpu
    ? { mjs: gpuLoader, wasm: gpuBinary }
    : { mjs: cpuLoader, wasm: cpuBinary };
  const threads = choice.threads ?? threadCount();
  ort.env.wasm.numThreads = threads;
  const backend = gpu ? onGpu(emulated) : onCpu(threads, obstacle);
  return { ort, gpu, threads, backend };
}

/** The same build without its GPU, once that has failed. */
export function withoutGpu(runtime: Runtime, reason: string): Runtime {
  return { ...runtime, gpu: false, backend: onCpu(runtime.threads, `WebGPU failed (${reason})`) };
}

function onGpu(emulated: boolean): Backend {
  const why = emulated ? "as the address asks for; emulated on the CPU" : "on the graphics card";
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
  if (!self.isSecureContext) return ["no more threads, since the page was not opened over https"];
  return ["no more threads, since this host sends no COOP/COEP headers"];
}

/** The adapter, and what keeps the network off WebGPU; null where nothing does. */
async function askForGpu(emulationToo: boolean): Promise<{ obstacle: string | null; emulated: boolean }> {
  const no = (obstacle: string) => ({ obstacle, emulated: false });
  if (!self.isSecureContext) return no("WebGPU needs a page opened over https");
  if (!("gpu" in navigator)) return no("this browser has no WebGPU");
  const adapter = await navigator.gpu.requestAdapter().catch(() => null);
  if (!adapter) return no("no graphics card for WebGPU");
  const emulated = adapter.info.isFallbackAdapter || adapter.info.architecture === "swiftshader";
  if (emulated && !emulationToo) return no("WebGPU is only emulated here");
  return { obstacle: null, emulated };
}
