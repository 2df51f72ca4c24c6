/** How far a network looks, measured as distill.stylize does (stylize/onnx_student.py). In the worker. */
import type { Student } from "./manifest";
import { NetworkSession } from "./network_session";
import type { Runtime } from "./runtime";

const PATCH = 384; // pixels: the most that is measured
const HEIGHT = 32;
const CELL = 8; // pixels of one colour: noise of single pixels is mostly ignored
const CHANGE = 1e-6; // less is float32's own rounding

/** Pixels to a side across which a change of the input is seen to change the output at all. */
export async function measureReach(
  student: Student,
  runtime: Runtime,
  network: ArrayBuffer,
  summary: Float32Array | null,
): Promise<number> {
  const width = 2 * PATCH;
  const session = await NetworkSession.open(student, { width, height: HEIGHT }, runtime, network, summary);
  try {
    const random = generator();
    const first = colours(width, random);
    session.input.set(first);
    const before = (await session.run()).slice();
    let furthest = 0;
    for (const power of [1, 4]) {
      const other = colours(width, random);
      for (let i = 0; i < first.length; i++)
        session.input[i] = i % width < PATCH ? other[i] ** power : first[i];
      const after = await session.run();
      for (let i = 0; i < before.length; i++) {
        const away = (i % width) - PATCH + 1;
        if (away > furthest && Math.abs(after[i] - before[i]) > CHANGE) furthest = away;
      }
    }
    return furthest;
  } finally {
    await session.close();
  }
}

/** Planes of even squares. */
function colours(width: number, random: () => number): Float32Array {
  const [wide, high] = [width / CELL, HEIGHT / CELL];
  const cells = Float32Array.from({ length: 3 * wide * high }, random);
  return Float32Array.from({ length: 3 * width * HEIGHT }, (_, i) => {
    const [x, row] = [i % width, Math.floor(i / width)];
    const plane = Math.floor(row / HEIGHT);
    return cells[(plane * high + Math.floor((row % HEIGHT) / CELL)) * wide + Math.floor(x / CELL)];
  });
}

/** Even numbers in [0, 1), the same each time (Park and Miller 1988). */
function generator(): () => number {
  let state = 1;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}
