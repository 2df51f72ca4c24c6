/** `import "distill-lens/react"`: <distill-lens> in pages of React 19. */
import type { DetailedHTMLProps, HTMLAttributes } from "react";
import type { DistillLens, DistillLensAttributes, DistillLensEvents } from "./index.js";

type Events = { [Name in keyof DistillLensEvents as `on${Name}`]?: (event: DistillLensEvents[Name]) => void };
declare module "react" {
  namespace JSX {
    interface IntrinsicElements {
      "distill-lens": DetailedHTMLProps<HTMLAttributes<DistillLens>, DistillLens> & DistillLensAttributes & Events;
    }
  }
}
