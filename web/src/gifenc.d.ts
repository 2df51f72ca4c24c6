/** What is used of gifenc, which brings no types of its own. */
declare module "gifenc" {
  export type Palette = [number, number, number][];

  export interface Encoder {
    /** `palette` with the first frame alone: all others share it. `delay` in milliseconds. */
    writeFrame(
      index: Uint8Array,
      width: number,
      height: number,
      options: { palette?: Palette; delay: number; transparent: boolean; transparentIndex: number },
    ): void;
    finish(): void;
    bytes(): Uint8Array<ArrayBuffer>;
  }

  export function GIFEncoder(): Encoder;
  export function quantize(rgba: Uint8ClampedArray, colours: number): Palette;
  export function applyPalette(rgba: Uint8ClampedArray, palette: Palette): Uint8Array;
}
