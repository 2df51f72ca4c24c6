/** The page's worker: inference by the ONNX Runtime that the page's folder holds. */
import { serve } from "./inference_worker";
import { pageBuilds } from "./page_runtime";

serve(() => pageBuilds());
