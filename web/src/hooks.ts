/**
 * For tests and benchmarks, in the browser's console too:
 *
 *     await distill.last()   the network's last input and output, float32 planes
 *     distill.busy()         whether anything waits to be drawn
 *     distill.speed()        frames so far, frames a second, milliseconds, and where it runs
 */
import type { Engine } from "./engine";
import type { Speed } from "./meter";
import type { Backend, Last } from "./protocol";

export interface Hooks {
  last(): Promise<Last | null>;
  busy(): boolean;
  speed(): Speed & { backend: Backend | null };
}

declare global {
  interface Window {
    distill: Hooks;
  }
}

export function offerHooks(engine: Engine, busy: () => boolean, speed: () => Speed): void {
  window.distill = {
    last: () => engine.last(),
    busy,
    speed: () => ({ ...speed(), backend: engine.backend }),
  };
}
