/** The embedded lens's worker: the ONNX Runtime in the folder that the element names. */
import type * as Ort from "onnxruntime-web";
import { fetchFile } from "../download";
import { serve } from "../inference_worker";
import type { Build } from "../runtime";

serve(({ runtime }) => {
  const root = new URL(runtime!);
  const build = (module: string, parts: string): Build => ({
    loader: new URL(`${parts}.mjs`, root).href,
    binary: new URL(`${parts}.wasm`, root).href,
    async load() {
      await fetchFile(module, root); // names what is missing; browsers' own words do not
      return (await import(/* @vite-ignore */ new URL(module, root).href)) as typeof Ort;
    },
  });
  const parts = "ort-wasm-simd-threaded";
  return {
    gpu: build("ort.webgpu.min.mjs", `${parts}.asyncify`),
    cpu: build("ort.wasm.min.mjs", parts),
    root,
    packed: false, // other hosts have no .gz beside, and most compress by themselves
  };
});
