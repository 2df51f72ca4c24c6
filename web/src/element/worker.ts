/** The embedded lens's worker: the ONNX Runtime in the folder that the element names. */
import type * as Ort from "onnxruntime-web";
import { fetchFile } from "../download";
import { serve, type Extras } from "../inference_worker";
import type { BackendChoice } from "../protocol";
import type { Build, Builds } from "../runtime";

/** A module in the folder of ONNX Runtime's files. */
async function bring(module: string, root: URL): Promise<unknown> {
  await fetchFile(module, root); // names what is missing; browsers' own words do not
  return import(/* @vite-ignore */ new URL(module, root).href);
}

const builds = ({ runtime }: BackendChoice): Builds => {
  const root = new URL(runtime!);
  const build = (module: string, parts: string): Build => ({
    loader: new URL(`${parts}.mjs`, root).href,
    binary: new URL(`${parts}.wasm`, root).href,
    load: () => bring(module, root) as Promise<typeof Ort>,
  });
  const parts = "ort-wasm-simd-threaded";
  return {
    gpu: build("ort.webgpu.min.mjs", `${parts}.asyncify`),
    cpu: build("ort.wasm.min.mjs", parts),
    root,
    packed: false, // other hosts have no .gz beside, and most compress by themselves
  };
};
serve(builds, { bringParts: ({ runtime }) => bring("parts.js", new URL(runtime!)) as ReturnType<NonNullable<Extras["bringParts"]>> });
