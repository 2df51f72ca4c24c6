/** Where faces are: MediaPipe's BlazeFace, and an oval for each face. In the worker. */
import type { InferenceSession, Tensor } from "onnxruntime-web";
import { LOOK, POINTS, decodeFaces, distinct, type Face } from "./blazeface";
import { mirrored, ovalOf, paint } from "./face_oval";
import { SIDE, square, type MaskSource, type View } from "./mask_source";
import { toPlanes } from "./planes";
import { MARKS, type Box, type FaceMarks, type Size } from "./protocol";
import type { Runtime } from "./runtime";

const [INPUT, BOXES, SCORES] = ["photo", "boxes", "scores"]; // as tools/mediapipe_networks.py names them
// How sure the network must be. Of photos without people it calls a hand, a lamp or a flower a face in
// 7 of 100 with MediaPipe's 0.5, in 2 with 0.6; of the faces lost those were mostly small ones, for
// which there are the tiles. As those are many looks, they must be surer.
const SURE = 0.6;
const SURE_IN_TILES = 0.8;
const TILE = 0.5; // of the shorter side, each half over the next: a face of a quarter lies whole in one

export class FaceFinder implements MaskSource {
  readonly none = 0;
  readonly whole = 1;
  private readonly input = new Float32Array(3 * LOOK * LOOK);
  private readonly tensor: Tensor;
  private readonly context = square(LOOK);
  private readonly mask = new Float32Array(SIDE * SIDE);
  private found: Face[] = []; // of the frame that was looked at last
  private frame: ImageBitmap | null = null;

  constructor(
    { ort }: Runtime,
    private readonly session: InferenceSession,
  ) {
    this.tensor = new ort.Tensor("float32", this.input, [1, 3, LOOK, LOOK]);
  }

  async runs(): Promise<boolean> {
    const answers = await this.run();
    return answers.every((values) => values.every(Number.isFinite));
  }

  async find(_photo: Float32Array, view: View): Promise<Float32Array> {
    const { crop, mirror } = view;
    const ovals = (await this.faces(view)).map(ovalOf);
    paint(mirror ? ovals.map((each) => mirrored(each, crop.width)) : ovals, crop, this.mask);
    return this.mask;
  }

  /** Faces in pixels of the crop. They are looked for in the frame itself, as it is: mirrored is what is found. */
  async faces({ frame, crop, still }: View): Promise<Face[]> {
    if (frame === this.frame) return this.found;
    const looks = [{ box: { ...crop, left: 0, top: 0 }, sure: SURE }];
    // The network sees faces from about a sixth of what it looks at: smaller ones in parts of it.
    if (still) looks.push(...tiles(crop).map((box) => ({ box, sure: SURE_IN_TILES })));
    const faces: Face[] = [];
    for (const { box, sure } of looks) faces.push(...(await this.look(frame, crop, box, sure)));
    this.frame = frame;
    return (this.found = distinct(faces));
  }

  /** Their marks, in what is seen of the view: a mirrored face's left eye is what was its right one. */
  async marks(view: View): Promise<FaceMarks[]> {
    const { crop, mirror } = view;
    const other = (name: string) => (name.startsWith("left") ? name.replace("left", "right") : name.replace("right", "left"));
    return (await this.faces(view)).map(({ places }) => {
      const marks = MARKS.map((name, i) => {
        const x = places[POINTS.leftEye + 2 * i] / crop.width;
        return [mirror ? other(name) : name, [mirror ? 1 - x : x, places[POINTS.leftEye + 2 * i + 1] / crop.height]];
      });
      return Object.fromEntries(marks) as FaceMarks;
    });
  }

  /** The faces in a box of the crop, in pixels of the crop. */
  private async look(frame: ImageBitmap, crop: Box, box: Box, sure: number): Promise<Face[]> {
    const { context } = this;
    // Its own shape in the square, between black bars, as the network learned it.
    const scale = LOOK / Math.max(box.width, box.height);
    const [wide, high] = [scale * box.width, scale * box.height];
    const rim = [(LOOK - wide) / 2, (LOOK - high) / 2];
    context.fillStyle = "black";
    context.fillRect(0, 0, LOOK, LOOK);
    context.fillStyle = "white"; // behind what is see-through, as the student sees it
    context.fillRect(rim[0], rim[1], wide, high);
    const [left, top] = [crop.left + box.left, crop.top + box.top];
    context.drawImage(frame, left, top, box.width, box.height, rim[0], rim[1], wide, high);
    toPlanes(context.getImageData(0, 0, LOOK, LOOK).data, this.input);
    const [boxes, scores] = await this.run();
    const start = [box.left, box.top];
    const pixels = (share: number, value: number) =>
      (share * LOOK - rim[value % 2]) / scale + start[value % 2];
    return decodeFaces(boxes, scores, sure).map(({ score, places }) => ({
      score,
      places: places.map(pixels),
    }));
  }

  private async run(): Promise<[Float32Array, Float32Array]> {
    const outputs = await this.session.run({ [INPUT]: this.tensor });
    const values = async (name: string) => (await outputs[name].getData()) as Float32Array;
    return [await values(BOXES), await values(SCORES)];
  }
}

/** Squares that cover a picture, each half over the next. */
function tiles({ width, height }: Size): Box[] {
  const side = TILE * Math.min(width, height);
  const starts = (length: number) => {
    const steps = Math.ceil((2 * (length - side)) / side - 1e-6);
    return Array.from({ length: steps + 1 }, (_, step) => ((length - side) * step) / steps);
  };
  const columns = starts(width);
  return starts(height).flatMap((top) => columns.map((left) => ({ left, top, width: side, height: side })));
}
