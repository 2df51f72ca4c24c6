// node stylize.mjs STUDENT.onnx PHOTO OUT.png
//
//     npm install --ignore-scripts onnxruntime-node sharp     (its scripts only fetch CUDA's libraries)
//
// STUDENT.onnx takes any size: one of the package (src/distill/models/zoo/comic.onnx), or an export with
// exporter.dynamic=true.
import { InferenceSession, Tensor } from "onnxruntime-node";
import sharp from "sharp";

const STRIDE = 32; // of the deepest features: what the sides must divide by

/** A session for any number of pictures; `threads` of each run. */
export const open = (file, threads = 1) => InferenceSession.create(file, { intraOpNumThreads: threads });

/** A picture's file or bytes to the stylised one, a sharp image of the same size. */
export async function stylize(session, photo) {
  const upright = sharp(photo).rotate().flatten({ background: "white" }).toColourspace("srgb");
  const { data: rgb, info } = await upright.raw().toBuffer({ resolveWithObject: true });
  const { width, height } = info;
  const [wide, high] = [width, height].map((side) => STRIDE * Math.ceil(side / STRIDE));
  const planes = new Float32Array(3 * wide * high);
  for (let y = 0, i = 0; y < high; y++)
    for (let x = 0; x < wide; x++, i++) {
      const at = 3 * (Math.min(y, height - 1) * width + Math.min(x, width - 1)); // the last row and column go on
      for (let c = 0; c < 3; c++) planes[c * wide * high + i] = rgb[at + c] / 255;
    }
  const input = new Tensor("float32", planes, [1, 3, high, wide]);
  const output = (await session.run({ [session.inputNames[0]]: input }))[session.outputNames[0]].data;
  const made = new Uint8ClampedArray(3 * width * height); // which rounds and cuts off
  for (let y = 0, i = 0; y < height; y++)
    for (let x = 0; x < width; x++, i += 3)
      for (let c = 0; c < 3; c++) made[i + c] = 255 * output[c * wide * high + y * wide + x];
  return sharp(made, { raw: { width, height, channels: 3 } });
}

if (process.argv[1] === import.meta.filename) {
  const [student, photo, out] = process.argv.slice(2);
  await (await stylize(await open(student), photo)).toFile(out);
}
