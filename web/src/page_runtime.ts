/** ONNX Runtime as the page's build has it. In the worker. */
import gpuLoader from "onnxruntime-web/ort-wasm-simd-threaded.asyncify.mjs?url";
import gpuBinary from "onnxruntime-web/ort-wasm-simd-threaded.asyncify.wasm?url";
import cpuLoader from "onnxruntime-web/ort-wasm-simd-threaded.mjs?url";
import cpuBinary from "onnxruntime-web/ort-wasm-simd-threaded.wasm?url";
import type { Builds } from "./runtime";

export function pageBuilds(): Builds {
  return {
    gpu: { loader: gpuLoader, binary: gpuBinary, load: () => import("onnxruntime-web/webgpu") },
    cpu: { loader: cpuLoader, binary: cpuBinary, load: () => import("onnxruntime-web/wasm") },
    root: new URL("..", self.location.href), // the worker's script lies one below the page's folder
    packed: true,
  };
}
