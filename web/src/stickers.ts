/** What faces wear: stickers laid on by marks of the face, as distill.stylize's overlay= (stylize/stickers.py). */
import type { FaceMarks, Mark, Size, Sticker } from "./protocol";

type Context = OffscreenCanvasRenderingContext2D | CanvasRenderingContext2D;
type Place = readonly [number, number];

// The nose's distance from the middle of the eyes, along their line, by theirs: where it begins to fade, and
// where nothing is left. About 30 and 50 degrees.
const TURNED = [0.35, 0.65];
const MOVED = 0.05; // distances between the eyes that a face may move in a frame and stay two thirds
const STEADY = 0.8; // of its last place that a face keeps which does not move
const FADE = 0.2; // of its opacity that a face gains or loses from a frame to the next
const LOST = 1.5; // distances between the eyes
// Of a face that looks at the camera, in those from their middle; and of the squares of distill.prepare's sketches.
const [NOSE, MOUTH] = [0.56, 1.06];
const [SIDE, EYES] = [5, 0.45];

/** A face, and how much is seen of what it wears. */
export interface Wearer {
  marks: FaceMarks;
  opacity: number;
}

/** Where the marks lie in a drawing of which nothing is said: as in sketches that networks learn from. */
export function squareAnchors({ width, height }: Size): Sticker["anchors"] {
  const apart = width / SIDE;
  const at = (x: number, y: number): Place => [width / 2 + x * apart, EYES * height + y * apart];
  return { right_eye: at(-0.5, 0), left_eye: at(0.5, 0), nose: at(0, NOSE), mouth: at(0, MOUTH) };
}

/** Faces as they are found: those that look at the camera wear all of it. Marks are shares of this shape. */
export function wearers(faces: FaceMarks[], shape: number): Wearer[] {
  return faces.map((marks) => ({ marks, opacity: facing(marks, shape) }));
}

function facing({ right_eye, left_eye, nose }: FaceMarks, shape: number): number {
  const across = minus(left_eye, right_eye, shape);
  const off = minus(nose, middle([right_eye, left_eye]), shape);
  const along = (off[0] * across[0] + off[1] * across[1]) / (across[0] ** 2 + across[1] ** 2 || 1);
  return Math.min(1, Math.max(0, (TURNED[1] - Math.abs(along)) / (TURNED[1] - TURNED[0])));
}

/** The last frame's faces where they are now, then new ones; what is lost fades where it was. */
export function follow(faces: Wearer[], found: Wearer[], shape: number): Wearer[] {
  const left = [...found];
  const kept = faces.map((last) => {
    const far = left.map((now) => distance(now.marks, last.marks, shape));
    const nearest = Math.min(...far);
    if (!(nearest <= LOST)) return { ...last, opacity: last.opacity - FADE };
    const [now] = left.splice(far.indexOf(nearest), 1);
    const keep = STEADY * Math.exp(-((nearest / MOVED) ** 2));
    const step = Math.min(FADE, Math.max(-FADE, now.opacity - last.opacity));
    return { marks: mixed(now.marks, last.marks, keep), opacity: last.opacity + step };
  });
  const fresh = left.map(({ marks, opacity }) => ({ marks, opacity: Math.min(opacity, FADE) }));
  return [...kept, ...fresh].filter(({ opacity }) => opacity > 1e-6);
}

/** Put what they wear over a whole canvas, from the column `left` on; the first face comes last. */
export function dress(context: Context, stickers: readonly Sticker[], faces: Wearer[], left = 0): void {
  const { width, height } = context.canvas;
  context.save();
  context.beginPath();
  context.rect(left, 0, width - left, height);
  context.clip();
  context.imageSmoothingQuality = "high";
  for (const { marks, opacity } of [...faces].reverse())
    for (const { picture, anchors } of stickers) {
      const names = Object.keys(anchors) as Mark[];
      context.globalAlpha = Math.max(0, opacity);
      context.setTransform(...fitted(names.map((name) => anchors[name]!), names.map((name) => [marks[name][0] * width, marks[name][1] * height])));
      context.drawImage(picture, 0, 0);
    }
  context.restore();
}

/** How places are moved, turned and scaled to lie on others as near as can be (least squares), as a canvas takes it. */
function fitted(here: Place[], there: Place[]): [number, number, number, number, number, number] {
  const [from, to] = [middle(here), middle(there)];
  let [re, im, size] = [0, 0, 0];
  here.forEach((place, i) => {
    const [x, y, u, v] = [...minus(place, from), ...minus(there[i], to)];
    re += x * u + y * v;
    im += x * v - y * u;
    size += x * x + y * y;
  });
  [re, im] = [re / size, im / size];
  return [re, im, -im, re, to[0] - re * from[0] + im * from[1], to[1] - im * from[0] - re * from[1]];
}

/** How far marks have moved on average, in distances between the eyes. */
function distance(now: FaceMarks, last: FaceMarks, shape: number): number {
  const names = Object.keys(last) as Mark[];
  const length = (place: Place) => Math.hypot(...place);
  const moves = names.map((name) => length(minus(now[name], last[name], shape)));
  return moves.reduce((sum, move) => sum + move, 0) / names.length / length(minus(last.left_eye, last.right_eye, shape));
}

function mixed(now: FaceMarks, last: FaceMarks, keep: number): FaceMarks {
  const mix = (name: Mark) => [0, 1].map((axis) => now[name][axis] + keep * (last[name][axis] - now[name][axis]));
  return Object.fromEntries((Object.keys(now) as Mark[]).map((name) => [name, mix(name)])) as unknown as FaceMarks;
}

function middle(places: Place[]): Place {
  const mean = (axis: 0 | 1) => places.reduce((sum, place) => sum + place[axis], 0) / places.length;
  return [mean(0), mean(1)];
}

/** `shape`: width by height of what the places are shares of. */
function minus(one: Place, other: Place, shape = 1): Place {
  return [(one[0] - other[0]) * shape, one[1] - other[1]];
}
