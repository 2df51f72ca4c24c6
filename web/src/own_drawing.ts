/** A drawing of one's own, to be worn on faces: distill.stylize's wear= and overlay=FILE (stylize/stickers.py). */
import type { Engine } from "./engine";
import type { Student } from "./manifest";
import { MARKS, type Sticker } from "./protocol";
import { PNG } from "./save";
import { Picture } from "./sources";
import { squareAnchors } from "./stickers";
import { strings } from "./strings";

const LARGEST = 1024; // pixels of a sketch's long side that a network of any size takes

/**
 * What is see-through is worn as it is; of a sketch, which is opaque, what `network` makes of it. A .json among the
 * files says where marks of the face lie. Throws an Error in one line.
 */
export async function ownSticker(files: File[], engine: Engine, network: Student | undefined): Promise<Sticker> {
  const beside = files.find(({ name }) => /\.json$/i.test(name));
  const file = files.find((each) => each !== beside);
  if (!file) throw new Error(strings.files.noPicture(beside!.name));
  const source = await Picture.read(file).catch(() => {
    throw new Error(strings.files.noPicture(file.name));
  });
  let picture = await source.next();
  source.stop();
  if (!source.clear) {
    if (!network) throw new Error(strings.wear.refused(file.name, strings.wear.opaque));
    picture = await drawn(picture, engine, network).catch((error: Error) => {
      throw new Error(strings.wear.refused(file.name, error.message));
    });
  }
  if (!beside) return { picture, anchors: squareAnchors(picture) };
  return { picture, anchors: anchorsOf(await beside.text(), beside.name, picture.width / source.full.width) };
}

/** What a network makes of a sketch, with its transparency, at the size that it takes. */
async function drawn(sketch: ImageBitmap, engine: Engine, student: Student): Promise<ImageBitmap> {
  const { width, height } = sketch;
  const [high, wide] = student.fixed ?? [Math.min(LARGEST, height), Math.min(LARGEST, width)];
  const scale = Math.min(wide / width, high / height);
  const [resizeWidth, resizeHeight] = [width, height].map((side) => Math.max(1, Math.round(scale * side)));
  const frame = await createImageBitmap(sketch, { resizeWidth, resizeHeight, resizeQuality: "high" });
  return createImageBitmap((await engine.drawFull({ student, frame }, PNG))!);
}

/** Of {"anchors": {"left_eye": [x, y], …}}, in pixels of a picture that is now so many times as large. */
function anchorsOf(text: string, name: string, scale: number): Sticker["anchors"] {
  try {
    const found = Object.entries(JSON.parse(text).anchors as Record<string, number[]>);
    const fits = found.every(([mark, at]) => MARKS.some((each) => each === mark) && at.length === 2 && at.every(Number.isFinite));
    if (!fits || new Set(found.map(([, at]) => String(at))).size < 2) throw new Error();
    return Object.fromEntries(found.map(([mark, [x, y]]) => [mark, [scale * x, scale * y]]));
  } catch {
    throw new Error(strings.wear.refused(name, strings.wear.anchors));
  }
}
