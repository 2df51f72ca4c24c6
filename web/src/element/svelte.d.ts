/** `import "distill-lens/svelte"`: <distill-lens> in pages of Svelte. */
import type { HTMLAttributes } from "svelte/elements";
import type { DistillLens, DistillLensAttributes, DistillLensEvents } from "./index.js";

type Events = { [Name in keyof DistillLensEvents as `on${Name}`]?: (event: DistillLensEvents[Name]) => void };
declare module "svelte/elements" {
  interface SvelteHTMLElements {
    "distill-lens": Omit<HTMLAttributes<DistillLens>, keyof Events> & DistillLensAttributes & Events;
  }
}
