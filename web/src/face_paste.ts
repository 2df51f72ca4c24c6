/** Faces drawn by themselves, to be put into the picture: distill.stylize's face=paste. In the worker. */
import type { Face } from "./blazeface";
import { Enlarger } from "./enlarger";
import type { FaceFinder } from "./face_finder";
import { whole } from "./fit";
import type { Student } from "./manifest";
import { square as squareContext, type View } from "./mask_source";
import { drawSeen } from "./planes";
import type { Box, DrawnFace, InferRequest, InferResult, Size } from "./protocol";
import type { Runtime } from "./runtime";
import { seamless } from "./seamless";
import { StudentSession } from "./student_session";

const SHARE = 0.535; // of the square, in height, that the detector's box is: as stylize/portraits.py has it
const SOFT = 0.6; // of the way from its middle to its sides nothing fades: likewise
const STOPS = 16; // of the gradient between
const SIDE = 256; // pixels that the network draws, as in distill.stylize
const BUDGET = 22; // ms of a frame for faces where something moves: half of what one may take
const SEEN = 8; // frames by whose fastest that is judged
const ROOM = 0.8; // of that time, for more faces than before: they do not come and go
const FIRST = 3000; // ms without any until one is tried, unseen; then twice as long each time
const LONGEST = 12_000;
const COARSE = 64; // pixels a side at which the colours around a face are found where something moves
const SAME = 0.05; // of a square's side: one that moved less stays where it was, and does not tremble

type Wanted = View & Pick<InferRequest, "steady" | "apart">;
type Seen = Pick<View, "crop" | "mirror"> & { frame: CanvasImageSource };

export class FacePaste {
  private session: StudentSession | null = null;
  private finder: FaceFinder | null = null;
  private size: Size = { width: SIDE, height: SIDE };
  private file = "";
  private readonly enlarger = new Enlarger();
  private before: Box[] = [];
  private looks: number[] = []; // ms, of the last frames: finding faces
  private each: number[] = []; // drawing one
  private most = Infinity; // faces that there is time for, where something moves
  private rest = FIRST;
  private tried = 0; // when the last one was, or was left out

  /** With which network, where it is another one than before. */
  async open(student: Student, finder: FaceFinder, runtime: Runtime, network: ArrayBuffer): Promise<void> {
    this.finder = finder;
    if (this.file === student.file && this.session?.runtime === runtime) return;
    await this.session?.close();
    this.session = null;
    const [height, width] = student.fixed ?? [SIDE, SIDE];
    this.size = { width, height };
    const request = { what: "open", student: { ...student, colours_at: null }, size: this.size } as const;
    this.session = await StudentSession.open(request, runtime, network);
    this.file = student.file;
    this.restart();
  }

  /** What comes next has nothing to do with what came before, and may take another time. */
  restart(): void {
    this.before = [];
    this.looks = [];
    this.each = [];
    [this.most, this.rest] = [Infinity, FIRST];
  }

  /**
   * The faces of a view that fills so many pixels, the largest last, to be put over its `result`; where that is
   * yet to come, and they are to take its colours, they are not `settled`. Of what moves as many, the largest, as
   * there is time for; null: for none, which is tried again by itself.
   */
  async draw(view: Wanted, shown: Size, result: InferResult | null): Promise<DrawnFace[] | null> {
    const { still } = view;
    const most = still ? Infinity : this.affordable();
    if (most < 1 && !this.tryAgain()) return null;
    const start = performance.now();
    const found = (await this.finder!.faces(view)).map(squareOf).sort((one, other) => other.width - one.width);
    const squares = still ? found : found.map((each) => this.before.find((old) => same(each, old)) ?? each);
    const seen = view.apart === "poisson" && result ? seenOf(view, result) : null;
    const looked = performance.now();
    const drawn: DrawnFace[] = [];
    for (const square of squares.slice(0, Math.max(1, most)).reverse()) {
      const steady = squares.length === 1 && this.before.includes(square) ? view.steady : 0;
      drawn.push(await this.one(view, square, steady, shown, seen));
    }
    if (still) return drawn;
    this.before = squares;
    this.looks = [...this.looks, looked - start].slice(-SEEN);
    if (drawn.length) this.each = [...this.each, (performance.now() - looked) / drawn.length].slice(-SEEN);
    if (most > 0) return drawn;
    for (const { picture } of drawn) picture.close();
    return null;
  }

  private affordable(): number {
    if (this.each.length < SEEN) return this.most;
    const fit = (ms: number) => Math.max(0, Math.floor((ms - Math.min(...this.looks)) / Math.min(...this.each)));
    const most = Math.max(fit(ROOM * BUDGET), Math.min(this.most, fit(BUDGET)));
    if (most < 1 && this.most > 0) this.tried = Date.now();
    return (this.most = most);
  }

  /** Whether it is time to see if there is time for a face now. */
  private tryAgain(): boolean {
    if (Date.now() - this.tried < this.rest) return false;
    [this.tried, this.rest] = [Date.now(), Math.min(2 * this.rest, LONGEST)];
    return true;
  }

  private async one(view: Wanted, square: Box, steady: number, shown: Size, seen: OffscreenCanvas | null): Promise<DrawnFace> {
    const { crop, mirror, still } = view;
    const frame = cut(view, square).transferToImageBitmap();
    const all = { left: 0, top: 0, width: frame.width, height: frame.height };
    const { rim } = whole(all, this.size);
    const result = await this.session!.infer({ frame, crop: all, mirror: false, still: true, rim, steady, spare: null });
    const side = Math.max(1, Math.round((square.width * shown.width) / crop.width));
    const small = { ...this.session!.guide(), pixels: result.pixels, size: this.size, rim };
    const made = { ...result, ...this.enlarger.enlarge(small, result, { width: side, height: side }, still, null) };
    const left = mirror ? crop.width - square.left - square.width : square.left;
    const [width, height] = [square.width / crop.width, square.width / crop.height];
    const picture = canvasOf(made).transferToImageBitmap();
    frame.close();
    made.picture?.close();
    const face = { picture, box: { left: left / crop.width, top: square.top / crop.height, width, height } };
    return view.apart === "poisson" && !seen ? face : settled(face, seen, still);
  }
}

/** The square of which a face's box is that share, around its middle: pixels of the crop, perhaps beyond it. */
function squareOf({ places: [left, top, right, bottom] }: Face): Box {
  const side = Math.max(1, Math.round((bottom - top) / SHARE));
  const start = (low: number, high: number) => Math.round((low + high - side) / 2);
  return { left: start(left, right), top: start(top, bottom), width: side, height: side };
}

function same(one: Box, other: Box): boolean {
  return Math.hypot(one.left - other.left, one.top - other.top, one.width - other.width) < SAME * other.width;
}

/** A square of a view, in so many pixels a side; beyond the view it is mirrored. */
function cut({ frame, crop, mirror }: Seen, { left, top, width: side }: Box, made = side): OffscreenCanvas {
  const canvas = new OffscreenCanvas(made, made);
  const context = canvas.getContext("2d", { alpha: false })!;
  const { width, height } = crop;
  context.fillStyle = "white"; // behind what is see-through
  context.fillRect(0, 0, made, made);
  if (made < side) context.imageSmoothingQuality = "high";
  const scale = made / side;
  // Of the view, and of the two beside it that mirror it: how it is turned, and where its first pixel lies.
  const along = (start: number, length: number) => [
    [1, -start],
    ...(start < 0 ? [[-1, -start]] : []),
    ...(start + side > length ? [[-1, 2 * length - start]] : []),
  ];
  for (const [x, over] of along(left, width))
    for (const [y, down] of along(top, height)) {
      context.setTransform(scale * (mirror ? -x : x), 0, 0, scale * y, scale * (mirror ? side - over : over), scale * down);
      context.drawImage(frame, crop.left, crop.top, width, height, 0, 0, width, height);
    }
  return canvas;
}

/** A result without its rim. */
function canvasOf({ pixels, picture, width, height, rim }: InferResult): OffscreenCanvas {
  const canvas = new OffscreenCanvas(picture?.width ?? width - 2 * rim.width, picture?.height ?? height - 2 * rim.height);
  const context = canvas.getContext("2d")!;
  if (picture) context.drawImage(picture, 0, 0);
  else context.putImageData(new ImageData(pixels, width, height), -rim.width, -rim.height);
  return canvas;
}

/** A view with its result over it. */
function seenOf(view: View, result: InferResult): OffscreenCanvas {
  const over = canvasOf(result);
  if (!result.part) return over;
  const context = new OffscreenCanvas(over.width, over.height).getContext("2d")!;
  drawSeen(context, view);
  context.drawImage(over, 0, 0);
  return context.canvas;
}

/**
 * A face as it goes into a picture: opaque in a disc whose soft rim ends at the sides, and in the colours of what is
 * around it, where what is `seen` is given.
 */
export function settled({ picture, box }: DrawnFace, seen: OffscreenCanvas | null, still: boolean): DrawnFace {
  const side = picture.width;
  const context = new OffscreenCanvas(side, side).getContext("2d", { willReadFrequently: seen !== null })!;
  context.drawImage(picture, 0, 0, side, side);
  if (seen) {
    const { width, height } = seen;
    const [left, top, wide] = [box.left * width, box.top * height, box.width * width].map(Math.round);
    const coarse = still ? side : Math.min(side, COARSE);
    const bytes = (of: CanvasImageSource) => {
      const small = squareContext(coarse);
      small.drawImage(of, 0, 0, coarse, coarse);
      return small.getImageData(0, 0, coarse, coarse).data;
    };
    const all = { left: 0, top: 0, width, height };
    const around = bytes(cut({ frame: seen, crop: all, mirror: false }, { left, top, width: wide, height: wide }, coarse));
    const made = context.getImageData(0, 0, side, side);
    seamless(made.data, side, around, coarse < side ? bytes(picture) : made.data, coarse);
    context.putImageData(made, 0, 0);
  }
  picture.close();
  const half = side / 2;
  const disc = context.createRadialGradient(half, half, SOFT * half, half, half, half);
  for (let stop = 0; stop <= STOPS; stop++) {
    const share = 1 - stop / STOPS;
    disc.addColorStop(stop / STOPS, `rgb(0 0 0 / ${share * share * (3 - 2 * share)})`);
  }
  context.globalCompositeOperation = "destination-in";
  context.fillStyle = disc;
  context.fillRect(0, 0, side, side);
  return { picture: context.canvas.transferToImageBitmap(), box };
}
