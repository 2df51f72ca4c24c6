/** Faces drawn by themselves, to be put into the picture: distill.stylize's face=paste. In the worker. */
import type { Face } from "./blazeface";
import { Enlarger } from "./enlarger";
import type { FaceFinder } from "./face_finder";
import { whole } from "./fit";
import type { Student } from "./manifest";
import type { View } from "./mask_source";
import type { Box, DrawnFace, InferResult, Size } from "./protocol";
import type { Runtime } from "./runtime";
import { StudentSession } from "./student_session";

const SHARE = 0.535; // of the square, in height, that the detector's box is: as stylize/portraits.py has it
const SOFT = 0.6; // of the way from its middle to its sides nothing fades: likewise
const STOPS = 16; // of the gradient between
const SIDE = 288; // pixels that the network draws: 256, and distill.stylize's rim
const BUDGET = 22; // ms of a frame for faces where something moves: half of what one may take
const SEEN = 8; // frames by whose fastest that is judged
const ROOM = 0.8; // of that time, for more faces than before: they do not come and go
const FIRST = 3000; // ms without any until one is tried, unseen; then twice as long each time
const LONGEST = 12_000;
const SAME = 0.05; // of a square's side: one that moved less stays where it was, and does not tremble

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
   * The faces of a view that fills so many pixels, the largest last. Of what moves as many, the largest,
   * as there is time for; null: for none, which is tried again by itself.
   */
  async draw(view: View & { steady: number }, shown: Size): Promise<DrawnFace[] | null> {
    const { still } = view;
    const most = still ? Infinity : this.affordable();
    if (most < 1 && !this.tryAgain()) return null;
    const start = performance.now();
    const found = (await this.finder!.faces(view)).map(squareOf).sort((one, other) => other.width - one.width);
    const squares = still ? found : found.map((each) => this.before.find((old) => same(each, old)) ?? each);
    const looked = performance.now();
    const drawn: DrawnFace[] = [];
    for (const square of squares.slice(0, Math.max(1, most)).reverse()) {
      const steady = squares.length === 1 && this.before.includes(square) ? view.steady : 0;
      drawn.push(await this.one(view, square, steady, shown));
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

  private async one(view: View, square: Box, steady: number, shown: Size): Promise<DrawnFace> {
    const { crop, mirror, still } = view;
    const frame = cut(view, square);
    const all = { left: 0, top: 0, width: frame.width, height: frame.height };
    const { rim } = whole(all, this.size);
    const result = await this.session!.infer({ frame, crop: all, mirror: false, still: true, rim, steady, spare: null });
    const side = Math.max(1, Math.round((square.width * shown.width) / crop.width));
    const small = { ...this.session!.guide(), pixels: result.pixels, size: this.size, rim };
    const made = { ...result, ...this.enlarger.enlarge(small, result, { width: side, height: side }, still, null) };
    const left = mirror ? crop.width - square.left - square.width : square.left;
    const [width, height] = [square.width / crop.width, square.width / crop.height];
    frame.close();
    return { picture: faded(made), box: { left: left / crop.width, top: square.top / crop.height, width, height } };
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

/** A square of a view; beyond the view it is mirrored. */
function cut({ frame, crop, mirror }: View, { left, top, width: side }: Box): ImageBitmap {
  const canvas = new OffscreenCanvas(side, side);
  const context = canvas.getContext("2d", { alpha: false })!;
  const { width, height } = crop;
  context.fillStyle = "white"; // behind what is see-through
  context.fillRect(0, 0, side, side);
  // Of the view, and of the two beside it that mirror it: how it is turned, and where its first pixel lies.
  const along = (start: number, length: number) => [
    [1, -start],
    ...(start < 0 ? [[-1, -start]] : []),
    ...(start + side > length ? [[-1, 2 * length - start]] : []),
  ];
  for (const [x, over] of along(left, width))
    for (const [y, down] of along(top, height)) {
      context.setTransform(mirror ? -x : x, 0, 0, y, mirror ? side - over : over, down);
      context.drawImage(frame, crop.left, crop.top, width, height, 0, 0, width, height);
    }
  return canvas.transferToImageBitmap();
}

/** A result without its rim, opaque in a disc whose soft rim ends at the sides. */
function faded({ pixels, picture, width, height, rim }: InferResult): ImageBitmap {
  const [wide, high] = [picture?.width ?? width - 2 * rim.width, picture?.height ?? height - 2 * rim.height];
  const context = new OffscreenCanvas(wide, high).getContext("2d")!;
  if (picture) context.drawImage(picture, 0, 0);
  else context.putImageData(new ImageData(pixels, width, height), -rim.width, -rim.height);
  picture?.close();
  const disc = context.createRadialGradient(wide / 2, high / 2, (SOFT * wide) / 2, wide / 2, high / 2, wide / 2);
  for (let stop = 0; stop <= STOPS; stop++) {
    const share = 1 - stop / STOPS;
    disc.addColorStop(stop / STOPS, `rgb(0 0 0 / ${share * share * (3 - 2 * share)})`);
  }
  context.globalCompositeOperation = "destination-in";
  context.fillStyle = disc;
  context.fillRect(0, 0, wide, high);
  return context.canvas.transferToImageBitmap();
}
