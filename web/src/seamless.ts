/** Poisson blending: distill.stylize's blend=poisson (stylize/portraits.py). */
import { Between } from "./steady";

type Bytes = Uint8ClampedArray;

const FADED = 12; // a wave of which less than e^-12 is left is left out

/**
 * Give a square, RGBA, the colours that `around` has at its sides, and leave it its own gradients (Pérez, Gangnet and
 * Blake 2003, equation 3). What is added is smooth: it may be found from both pictures at fewer pixels a side, `coarse`,
 * with `small` in the place of `made`; at as many it is exact.
 */
export function seamless(made: Bytes, side: number, around: Bytes, small: Bytes = made, coarse = side): void {
  const place = (pixel: number) => ((pixel + 0.5) * coarse) / side;
  const between = new Between(coarse, Array.from({ length: side }, (_, x) => place(x)));
  const added = new Float32Array(coarse ** 2);
  for (let channel = 0; channel < 3; channel++) {
    for (let at = 0; at < added.length; at++) added[at] = around[4 * at + channel] - small[4 * at + channel];
    fill(added, coarse);
    for (let y = 0, at = channel; y < side; y++) {
      const row = between.row(added, place(y));
      for (let x = 0; x < side; x++, at += 4) made[at] += row[x];
    }
  }
}

/**
 * Give every inner value of a square the mean of its four neighbours, exactly: of what is at each side every sine wave
 * fades towards the opposite one as a sinh.
 */
function fill(plane: Float32Array, side: number): void {
  const end = side - 1; // of waves there is one less
  for (let y = 1; y < end; y++) plane.fill(0, y * side + 1, y * side + end);
  const fading = Float64Array.from({ length: end }, (_, k) => Math.acosh(2 - Math.cos((Math.PI * k) / end)));
  const left = (k: number, far: number) =>
    (Math.exp(-fading[k] * far) - Math.exp(fading[k] * (far - 2 * end))) / (1 - Math.exp(-2 * fading[k] * end));
  // Of each wave, row by row, the first half: the other is the same or, of every second wave, its negative.
  const sines = new Float32Array(((end >> 1) + 1) * end + 1);
  const sine = Float64Array.from({ length: 2 * end }, (_, at) => Math.sin((Math.PI * at) / end));
  for (let j = 1; 2 * j <= end; j++)
    for (let k = 0; k < end; k++) sines[j * end + k] = sine[(j * k) % (2 * end)];
  const waves = (start: number, step: number) => {
    const found = new Float64Array(end);
    for (let j = 1; 2 * j <= end; j++) {
      const one = (2 / end) * plane[start + j * step];
      const other = 2 * j < end ? (2 / end) * plane[start + (end - j) * step] : 0;
      for (let k = 1; k < end; k++) found[k] += (k % 2 ? one + other : one - other) * sines[j * end + k];
    }
    return found;
  };
  const [here, there] = [new Float64Array(side + 1), new Float64Array(side + 1)];
  for (const along of [1, side]) {
    const across = side + 1 - along;
    const [near, far] = [waves(0, along), waves(end * across, along)];
    // Two lines at once, as far from one side as from the other.
    for (let i = 1; 2 * i <= end; i++) {
      let count = 1;
      for (; count < end && fading[count] * i < FADED; count++) {
        const [own, other] = [left(count, i), left(count, end - i)];
        here[count] = near[count] * own + far[count] * other;
        there[count] = far[count] * own + near[count] * other;
      }
      here[count] = there[count] = 0;
      for (let j = 1; 2 * j <= end; j++) {
        let same = 0;
        let turned = 0;
        let sameThere = 0;
        let turnedThere = 0;
        for (let k = 1, at = j * end + 1; k < count; k += 2, at += 2) {
          same += here[k] * sines[at];
          turned += here[k + 1] * sines[at + 1];
          sameThere += there[k] * sines[at];
          turnedThere += there[k + 1] * sines[at + 1];
        }
        const [first, second, top, bottom] = [j * along, (end - j) * along, i * across, (end - i) * across];
        plane[top + first] += same + turned;
        if (second > first) plane[top + second] += same - turned;
        if (bottom > top) plane[bottom + first] += sameThere + turnedThere;
        if (second > first && bottom > top) plane[bottom + second] += sameThere - turnedThere;
      }
    }
  }
}
