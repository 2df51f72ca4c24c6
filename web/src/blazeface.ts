/**
 * What the face detector answers, decoded: BlazeFace (Bazarevsky et al. 2019), the short-range one
 * of MediaPipe, with the settings of its graph face_detection_short_range.
 */

/** Pixels of the square that the network looks at. */
export const LOOK = 128;

/**
 * A face in shares of the square: left, top, right and bottom of its box; then x and y of six
 * points. Left and right are the picture's.
 */
export interface Face {
  /** The network's own certainty, 0 to 1. */
  score: number;
  places: Float32Array;
}

/** Where in `places` the x of those points stands that a face's lean is told by. */
export const POINTS = { leftEye: 4, rightEye: 6, mouth: 10 };

const VALUES = 16; // of a box: its middle, its sides, its points
const GRIDS = [
  { cells: 16, boxes: 2 }, // a side, and in each cell
  { cells: 8, boxes: 6 },
];
const CLIP = 100; // of scores, before the sigmoid
const SAME = 0.3; // share of two boxes' union that both cover, above which they are of one face

const ANCHORS = anchors();

/** The middles of all cells, x and y, as often as there are boxes in them. */
function anchors(): Float32Array {
  const found: number[] = [];
  for (const { cells, boxes } of GRIDS)
    for (let cell = 0; cell < cells * cells; cell++)
      for (let box = 0; box < boxes; box++)
        found.push(((cell % cells) + 0.5) / cells, (Math.floor(cell / cells) + 0.5) / cells);
  return Float32Array.from(found);
}

/** The faces of which the network is as sure as `least`, the surest first. */
export function decodeFaces(boxes: Float32Array, scores: Float32Array, least: number): Face[] {
  const found: Face[] = [];
  for (let i = 0; i < scores.length; i++) {
    const score = 1 / (1 + Math.exp(-Math.min(CLIP, Math.max(-CLIP, scores[i]))));
    if (score >= least) found.push({ score, places: decoded(boxes, i) });
  }
  return averaged(found.sort((one, other) => other.score - one.score));
}

function decoded(boxes: Float32Array, box: number): Float32Array {
  const at = (value: number) => boxes[VALUES * box + value] / LOOK;
  const places = new Float32Array(VALUES);
  for (let axis = 0; axis < 2; axis++) {
    const anchor = ANCHORS[2 * box + axis];
    places[axis] = anchor + at(axis) - at(2 + axis) / 2;
    places[2 + axis] = anchor + at(axis) + at(2 + axis) / 2;
    for (let value = 4 + axis; value < VALUES; value += 2) places[value] = anchor + at(value);
  }
  return places;
}

/** Weighted non-maximum suppression: of boxes that are of one face, the mean by their scores. */
function averaged(faces: Face[]): Face[] {
  const kept: Face[] = [];
  for (let left = faces; left.length; ) {
    const [best] = left;
    const same = left.filter((each) => each === best || overlap(best, each) > SAME);
    const sum = same.reduce((total, { score }) => total + score, 0);
    const mean = (value: number) =>
      same.reduce((total, { score, places }) => total + score * places[value], 0) / sum;
    kept.push({ score: best.score, places: best.places.map((_, value) => mean(value)) });
    left = left.filter((each) => !same.includes(each));
  }
  return kept;
}

/** Of the same faces, found by several looks, the surest each. */
export function distinct(faces: Face[]): Face[] {
  const kept: Face[] = [];
  for (const face of [...faces].sort((one, other) => other.score - one.score))
    if (!kept.some((each) => overlap(each, face) > SAME || holds(each, face))) kept.push(face);
  return kept;
}

/** Whether the middle of another face lies within a face's box. */
function holds({ places: [left, top, right, bottom] }: Face, { places: other }: Face): boolean {
  const [x, y] = [(other[0] + other[2]) / 2, (other[1] + other[3]) / 2];
  return left < x && x < right && top < y && y < bottom;
}

/** Intersection over union. */
function overlap({ places: one }: Face, { places: other }: Face): number {
  const wide = Math.max(0, Math.min(one[2], other[2]) - Math.max(one[0], other[0]));
  const high = Math.max(0, Math.min(one[3], other[3]) - Math.max(one[1], other[1]));
  const area = (places: Float32Array) => (places[2] - places[0]) * (places[3] - places[1]);
  return (wide * high) / (area(one) + area(other) - wide * high) || 0;
}
