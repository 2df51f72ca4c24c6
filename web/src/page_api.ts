/**
 * For tests and benchmarks, in the browser's console too:
 *
 *     await distill.last()   the network's last input and output, float32 planes
 *     distill.busy()         whether anything waits for inference
 *     distill.speed()        frames so far, frames a second, milliseconds, and where it runs
 */
import type { Engine } from "./engine";
import type { Speed } from "./meter";
import type { Backend, LastTensors } from "./protocol";

export interface PageApi {
  last(): Promise<LastTensors | null>;
  busy(): boolean;
  speed(): Speed & { backend: Backend | null };
}

declare global {
  interface Window {
    distill: PageApi;
  }
}

export function exposePageApi(engine: Engine, busy: () => boolean, speed: () => Speed): void {
  window.distill = {
    last: () => engine.last(),
    busy,
    speed: () => ({ ...speed(), backend: engine.backend }),
  };
}
