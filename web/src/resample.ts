/**
 * Pictures at another size as Pillow makes them, which distill.stylize goes by: a filter along each
 * side, widened where a picture shrinks, so that every pixel counts. A canvas's own way is each
 * browser's.
 */
import type { Size } from "./protocol";

/** Bytes are rounded after each side, as Pillow does; floats are not. */
export type Values = Uint8ClampedArray<ArrayBuffer> | Float32Array<ArrayBuffer>;

export interface Filter {
  /** Half of its width in pixels of the coarser picture. */
  support: number;
  weight(x: number): number;
}

export const BOX: Filter = { support: 0.5, weight: (x) => (x > -0.5 && x <= 0.5 ? 1 : 0) };
export const BILINEAR: Filter = { support: 1, weight: (x) => Math.max(0, 1 - Math.abs(x)) };
const A = -0.5; // Keys 1981
export const BICUBIC: Filter = {
  support: 2,
  weight: (x) => {
    const d = Math.abs(x);
    if (d < 1) return ((A + 2) * d - (A + 3)) * d * d + 1;
    return d < 2 ? (((d - 5) * d + 8) * d - 4) * A : 0;
  },
};
const sinc = (x: number) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));
export const LANCZOS: Filter = {
  support: 3,
  weight: (x) => (x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0),
};

/** Of every pixel of a resampled side: the first pixel it is made of, and the weights from there on. */
export interface Taps {
  first: Int32Array;
  weights: Float64Array[];
}

/** The part of a side from `start` to `end`, of `length` pixels, as `count` pixels. */
export function taps(length: number, start: number, end: number, count: number, filter: Filter): Taps {
  const scale = (end - start) / count;
  const wide = Math.max(scale, 1);
  const support = filter.support * wide;
  const first = new Int32Array(count);
  const weights: Float64Array[] = [];
  for (let i = 0; i < count; i++) {
    const centre = start + (i + 0.5) * scale;
    const from = Math.max(0, Math.trunc(centre - support + 0.5));
    const own = new Float64Array(Math.min(length, Math.trunc(centre + support + 0.5)) - from);
    let sum = 0;
    for (let j = 0; j < own.length; j++) sum += own[j] = filter.weight((from + j - centre + 0.5) / wide);
    for (let j = 0; j < own.length; j++) own[j] /= sum;
    first[i] = from;
    weights.push(own);
  }
  return { first, weights };
}

/** Pixels with their `channels` side by side, at another size. */
export function resample(values: Values, from: Size, channels: number, to: Size, filter: Filter): Values {
  const across = taps(from.width, 0, from.width, to.width, filter);
  const down = taps(from.height, 0, from.height, to.height, filter);
  const wide = to.width === from.width ? values : along(values, from, channels, across);
  if (to.height === from.height) return wide;
  return below(wide, to.width * channels, channels, down);
}

/** The same along each row alone. */
export function along(values: Values, { width, height }: Size, channels: number, { first, weights }: Taps): Values {
  const made = like(values, weights.length * height * channels);
  for (let y = 0, to = 0; y < height; y++)
    for (let x = 0; x < weights.length; x++, to += channels)
      weigh(values, (y * width + first[x]) * channels, channels, weights[x], channels, made, to);
  return made;
}

function below(values: Values, row: number, channels: number, { first, weights }: Taps): Values {
  const made = like(values, row * weights.length);
  for (let y = 0, to = 0; y < weights.length; y++)
    for (let x = 0; x < row; x += channels, to += channels) weigh(values, first[y] * row + x, row, weights[y], channels, made, to);
  return made;
}

/** A pixel, of others a `step` apart. Four channels at once take half the time. */
function weigh(values: Values, from: number, step: number, weights: Float64Array, channels: number, made: Values, to: number): void {
  if (channels !== 4) {
    for (let channel = 0; channel < channels; channel++) {
      let sum = 0;
      for (let j = 0, i = from + channel; j < weights.length; j++, i += step) sum += weights[j] * values[i];
      made[to + channel] = sum;
    }
    return;
  }
  let r = 0, g = 0, b = 0, a = 0;
  for (let j = 0, i = from; j < weights.length; j++, i += step) {
    const weight = weights[j];
    r += weight * values[i];
    g += weight * values[i + 1];
    b += weight * values[i + 2];
    a += weight * values[i + 3];
  }
  made[to] = r;
  made[to + 1] = g;
  made[to + 2] = b;
  made[to + 3] = a;
}

function like(values: Values, length: number): Values {
  return values instanceof Float32Array ? new Float32Array(length) : new Uint8ClampedArray(length);
}

/** To the nearest, halves to the even number: as Python rounds. */
export function rounded(value: number): number {
  const down = Math.floor(value);
  if (value - down !== 0.5) return Math.round(value);
  return down % 2 === 0 ? down : down + 1;
}
