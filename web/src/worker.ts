/** The page's worker: inference by the ONNX Runtime that the page's folder holds. */
import { CardFrames } from "./card_frames";
import { FacePaste } from "./face_paste";
import { FullPicture } from "./full_picture";
import { serve } from "./inference_worker";
import { PartMask } from "./part_mask";
import { pageBuilds } from "./page_runtime";

serve(() => pageBuilds(), { CardFrames, FacePaste, FullPicture, PartMask });
