/** `import "distill-lens/vue"`: <distill-lens> in pages of Vue: templates and JSX. */
import type { DefineComponent } from "vue";
import type { DistillLensAttributes, DistillLensEvents } from "./index.js";

type Events = { [Name in keyof DistillLensEvents as `on${Capitalize<Name>}`]?: (event: DistillLensEvents[Name]) => void };
declare module "vue" {
  interface GlobalComponents {
    "distill-lens": DefineComponent<DistillLensAttributes & Events>;
  }
}
declare module "vue/jsx-runtime" {
  namespace JSX {
    interface IntrinsicElements {
      "distill-lens": DistillLensAttributes & Events;
    }
  }
}
