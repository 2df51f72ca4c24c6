/** `import "distill-lens/preact"`: <distill-lens> in pages of Preact. */
import type { HTMLAttributes } from "preact";
import type { DistillLens, DistillLensAttributes, DistillLensEvents } from "./index.js";

type Events = { [Name in keyof DistillLensEvents as `on${Name}`]?: (event: DistillLensEvents[Name]) => void };
declare module "preact" {
  namespace JSX {
    interface IntrinsicElements {
      "distill-lens": Omit<HTMLAttributes<DistillLens>, keyof DistillLensAttributes | keyof Events> & DistillLensAttributes & Events;
    }
  }
}
