/** What draws parts alone: beside ONNX Runtime's files, as few pages want it. */
export { PartMask } from "../part_mask";
