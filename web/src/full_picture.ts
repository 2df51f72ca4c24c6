/**
 * A picture made at its own size, step by step, so that other requests come between: drawn at it, as
 * distill.stylize does with upscale=tiles, or smaller and enlarged guided by the photo. In the worker.
 */
import { pasteFaces, putBehind } from "./backdrop";
import { recolour } from "./colours";
import { settled } from "./face_paste";
import { STRIDE } from "./fit";
import { Guided, type Small } from "./guided";
import type { Student } from "./manifest";
import { NetworkSession } from "./network_session";
import type { Fade } from "./part_mask";
import { splitAtSummary } from "./onnx_file";
import { FINE, LUMA, drawSeen, toBytes, toPlanes } from "./planes";
import type { Backdrop, BeginFullRequest, Blend, Box, DrawnFace, FaceMarks, FileKind, FullLook, Size, Sticker } from "./protocol";
import { measureReach } from "./reach";
import { LANCZOS, resample, rounded } from "./resample";
import { LIMIT_TOLD } from "./sizes";
import type { Runtime } from "./runtime";
import { dress, wearers } from "./stickers";
import { Teller } from "./teller";
import { blend, margin, spans, type Span } from "./tiles";

const TILES = [1280, 640]; // pixels a side that the network takes at once; less where memory ends
const STRIP = 256; // rows that are enlarged in a step

const NONE: Size = { width: 0, height: 0 };

type Bytes = Uint8ClampedArray<ArrayBuffer>;

/** RGBA bytes of a picture and of what is made of it. */
interface Picture extends Size {
  photo: Bytes;
  made: Bytes;
}

interface Tile {
  picture: Picture;
  across: Span;
  down: Span;
}

/** What the faces wear that have such marks. */
interface Worn {
  stickers: readonly Sticker[];
  marks: FaceMarks[];
}

export class FullPicture {
  private readonly own: Picture;
  private readonly drawn: Picture; // by the network: `own`, or less
  private readonly small: Picture | null;
  private readonly whole: Size; // of which `own` is all or the middle
  private readonly guided = new Guided();
  private guide: Small | null = null;
  private tiles: Tile[] = [];
  private done = 0;
  private open: NetworkSession | null = null;
  private openOn: Runtime | null = null;
  private summary: Float32Array | null = null; // of the whole picture, for every tile
  private readonly stencil: OffscreenCanvas | null; // opaque where the picture is

  /**
   * The frame is taken and closed; `clear`: what is see-through in it stays so. Over what is drawn come `faces`, as `apart` says; `fade` makes see-through what is to stay as the
   * photo has it; `behind` stands behind `people`, given by their opacity; over all come `stickers`.
   */
  constructor(
    readonly student: Student,
    private network: ArrayBuffer,
    frame: ImageBitmap,
    { mirror, side, middle, clear }: Pick<BeginFullRequest, "mirror" | "side" | "middle" | "clear">,
    private readonly layers: { fade: Fade | null; apart: Blend | null; faces: DrawnFace[]; people: ImageBitmap | null; behind: Backdrop | null } & Worn,
  ) {
    const { width, height } = (this.whole = { width: frame.width, height: frame.height });
    const scale = drawnScale(this.whole, student, side);
    const at = (pixels: number) => Math.max(1, Math.round(scale * pixels));
    this.own = taken(frame, mirror, clear, middle ?? this.whole, 1);
    // The thumbnail is of the whole picture, whichever part is drawn.
    this.drawn = scale < 1 || (middle && student.told) ? taken(frame, mirror, clear, { width: at(width), height: at(height) }, scale) : this.own;
    this.stencil = clear ? stencilOf(frame, mirror) : null;
    frame.close();
    this.small = forColours(this.drawn, student);
  }

  /** Finds the tiles; gives the number of steps. */
  async plan(runtime: Runtime): Promise<number> {
    await this.look(runtime);
    const { student, network, summary, drawn } = this;
    const reach = student.fixed || fits(drawn, TILES[0]) ? 0 : await measureReach(student, runtime, network, summary);
    for (const side of TILES) {
      const own = student.fixed ? [framed(drawn, student.fixed)] : tiled(drawn, side, margin(reach, side));
      this.tiles = this.small ? [...tiled(this.small, side, 0), ...own] : own;
      try {
        await this.sessionFor(own[0], runtime);
        break;
      } catch (error) {
        if (runtime.gpu || side === TILES.at(-1)) throw error;
      }
    }
    return this.tiles.length + 1 + (drawn === this.own ? 0 : Math.ceil(this.own.height / STRIP));
  }

  /** At the whole picture, for a network that is told of it. */
  private async look(runtime: Runtime): Promise<void> {
    const parts = splitAtSummary(this.network);
    if (!parts) return;
    const teller = await Teller.open(parts, runtime);
    try {
      const { photo, width, height } = this.drawn;
      const [wide, high] = [padded(width), padded(height)];
      const filled = new Uint32Array(wide * high); // a pixel each
      copyFilled(new Uint32Array(photo.buffer), this.drawn, filled, { left: 0, top: 0, width: wide, height: high });
      await teller.look(new Uint8ClampedArray(filled.buffer), { width: wide, height: high });
    } finally {
      await teller.close();
    }
    [this.network, this.summary] = [parts.drawn, teller.summary];
  }

  /** The next step; after a failure the same one again. */
  async step(runtime: Runtime): Promise<void> {
    const { tiles, done, drawn, small } = this;
    if (done < tiles.length) await this.draw(tiles[done], await this.sessionFor(tiles[done], runtime));
    else if (done > tiles.length) this.enlarge(STRIP * (done - tiles.length - 1));
    else if (small) recolour(drawn.made, drawn, small.made, small);
    this.done += 1;
  }

  /** A strip from `top` on of what was drawn smaller. */
  private enlarge(top: number): void {
    const { own, drawn, whole, guided } = this;
    if (!this.guide) guided.fit((this.guide = { ...drawn, luma: lumaOf(drawn.photo), shares: null, pixels: drawn.made, size: drawn, rim: NONE }));
    const height = Math.min(STRIP, own.height - top);
    const part = (bytes: Bytes) => bytes.subarray(4 * own.width * top, 4 * own.width * (top + height));
    const [left, above] = [(whole.width - own.width) >> 1, (whole.height - own.height) >> 1];
    if (drawn.width === whole.width) {
      for (let y = 0; y < height; y++) {
        const at = 4 * (left + (above + top + y) * whole.width);
        own.made.set(drawn.made.subarray(at, at + 4 * own.width), 4 * own.width * (top + y));
      }
      return;
    }
    guided.part(this.guide, part(own.photo), whole, { left, top: above + top, width: own.width, height }, part(own.made));
  }

  /** The file of it as it is looked at. */
  async finish(look: FullLook, kind: FileKind): Promise<Blob> {
    await this.close();
    const { width, height, photo, made } = this.own;
    const { fade, apart, faces, people, behind, stickers, marks } = this.layers;
    const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: faces.length > 0 })!;
    const put = (bytes: Bytes) => context.putImageData(new ImageData(bytes, width, height), 0, 0);
    if (faces.length) {
      const seen = fade && apart === "poisson" ? { ...this.own, photo: photo.slice(), made: made.slice() } : null;
      if (seen) fade!({ pixels: seen.made, width, height });
      put(seen ? composed(seen, { split: 0, strength: 1 }, true) : made);
      const ready = apart === "poisson" ? faces.map((face) => settled(face, context.canvas, true)) : faces;
      if (seen) put(made);
      pasteFaces(context, ready);
      made.set(context.getImageData(0, 0, width, height).data);
    }
    fade?.({ pixels: made, width, height });
    const plain = !fade && look.split === 0 && look.strength === 1;
    const bytes = plain ? made : composed(this.own, look, fade !== null);
    put(bytes);
    if (people && behind) putBehind(context, people, behind, Math.round(width * look.split));
    if (this.stencil) {
      context.globalCompositeOperation = "destination-in";
      context.drawImage(this.stencil, 0, 0);
      context.globalCompositeOperation = "source-over";
    }
    dress(context, stickers, wearers(marks, width / height), Math.round(width * look.split));
    return context.canvas.convertToBlob(kind);
  }

  async close(): Promise<void> {
    const { open } = this;
    this.open = null;
    await open?.close();
  }

  /** The session that was used last, where it fits. */
  private async sessionFor({ across, down }: Tile, runtime: Runtime): Promise<NetworkSession> {
    const size = { width: across.end - across.start, height: down.end - down.start };
    const same = this.open?.size.width === size.width && this.open.size.height === size.height;
    if (this.open && same && this.openOn === runtime) return this.open;
    await this.close();
    this.open = await NetworkSession.open(this.student, size, runtime, this.network, this.summary);
    this.openOn = runtime;
    return this.open;
  }

  private async draw({ picture, across, down }: Tile, session: NetworkSession): Promise<void> {
    const { width, height } = session.size;
    const tile = new Uint32Array(width * height);
    copyFilled(new Uint32Array(picture.photo.buffer), picture, tile, { left: across.start, top: down.start, width, height });
    const drawn = new Uint8ClampedArray(tile.buffer);
    toPlanes(drawn, session.input);
    toBytes(await session.run(), this.student.channels, drawn);
    blend(drawn, [across, down], picture.made, picture);
  }
}

/** How much smaller than a picture the network is to draw it. */
function drawnScale({ width, height }: Size, { fixed, told }: Student, side: number | null): number {
  if (fixed) return Math.min(1, fixed[0] / height, fixed[1] / width);
  return Math.min(1, (told ? Math.min(side ?? LIMIT_TOLD, LIMIT_TOLD) : (side ?? Infinity)) / Math.max(width, height));
}

/** The one tile of a network of one size, height and width. */
function framed(picture: Picture, [height, width]: [number, number]): Tile {
  return { picture, across: spans(width, width, 0)[0], down: spans(height, height, 0)[0] };
}

function fits({ width, height }: Size, tile: number): boolean {
  return Math.max(padded(width), padded(height)) <= tile;
}

/** A side as long as the network wants it. */
function padded(side: number): number {
  return STRIDE * Math.ceil(side / STRIDE);
}

/** A part of a picture, one number a pixel; its last row and column fill up what lies beyond, as in an exported file. */
function copyFilled(from: Uint32Array, { width, height }: Size, to: Uint32Array, part: Box): void {
  for (let y = 0, i = 0; y < part.height; y++) {
    const row = Math.min(part.top + y, height - 1) * width;
    for (let x = 0; x < part.width; x++, i++) to[i] = from[row + Math.min(part.left + x, width - 1)];
  }
}

function tiled(picture: Picture, side: number, overlap: number): Tile[] {
  const columns = spans(padded(picture.width), side, overlap);
  return spans(padded(picture.height), side, overlap).flatMap((down) => columns.map((across) => ({ picture, across, down })));
}

/** The same picture at the size from which a large one has its colours; null where it needs none. */
function forColours({ photo, width, height }: Picture, { colours_at }: Student): Picture | null {
  const long = Math.max(width, height);
  if (!colours_at || long <= colours_at) return null;
  const side = (own: number) => Math.max(1, rounded((own * colours_at) / long));
  const size = { width: side(width), height: side(height) };
  const small = resample(photo, { width, height }, 4, size, LANCZOS) as Bytes;
  return { photo: small, made: new Uint8ClampedArray(small.length), ...size };
}

/**
 * The middle of a frame at some scale, mirrored from left to right or not. Of a `clear` one white where nothing can
 * be seen; what is half see-through keeps its colours, as in distill.stylize: over white it would get a pale rim.
 */
function taken(frame: ImageBitmap, mirror: boolean, clear: boolean, { width, height }: Size, scale: number): Picture {
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { willReadFrequently: true, alpha: clear, ...(clear && FINE) })!;
  context.imageSmoothingQuality = "high";
  // Scaled, all of it is wanted, to the last pixel.
  const [wide, high] = scale < 1 ? [width, height] : [frame.width, frame.height];
  const crop = { left: 0, top: 0, width: frame.width, height: frame.height };
  const box = { left: (width - wide) >> 1, top: (height - high) >> 1, width: wide, height: high };
  drawSeen(context, { frame, crop, mirror }, box, clear ? "transparent" : "white");
  const photo = context.getImageData(0, 0, width, height).data;
  for (let i = 3; clear && i < photo.length; i += 4) {
    if (photo[i] === 0) photo.fill(255, i - 3, i);
    photo[i] = 255;
  }
  return { photo, made: new Uint8ClampedArray(photo.length), width, height };
}

function stencilOf(frame: ImageBitmap, mirror: boolean): OffscreenCanvas {
  const { width, height } = frame;
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d")!;
  context.setTransform(mirror ? -1 : 1, 0, 0, 1, mirror ? width : 0, 0);
  context.drawImage(frame, 0, 0);
  return canvas;
}

function lumaOf(rgba: Bytes): Float32Array {
  const [red, green, blue] = LUMA.map((weight) => weight / 255);
  return Float32Array.from({ length: rgba.length / 4 }, (_, i) => red * rgba[4 * i] + green * rgba[4 * i + 1] + blue * rgba[4 * i + 2]);
}

/** As viewer.ts paints it, but written over the photo: left of the divider that, then what was made. */
function composed(picture: Picture, { split, strength }: FullLook, faded: boolean): Bytes {
  const { photo, made, width, height } = picture;
  const cut = Math.round(width * split);
  const line = cut > 0 && cut < width ? Math.max(1, Math.round(width / 1024)) : 0; // to each side
  for (let y = 0; y < height; y++) {
    const row = 4 * y * width;
    if (strength === 1 && !faded) photo.set(made.subarray(row + 4 * cut, row + 4 * width), row + 4 * cut);
    else mix(photo, made, row + 4 * cut, row + 4 * width, strength);
    photo.fill(255, row + 4 * Math.max(0, cut - line), row + 4 * (cut + line));
  }
  return photo;
}

function mix(below: Bytes, above: Bytes, from: number, to: number, strength: number): void {
  for (let i = from; i < to; i += 4) {
    const share = (strength * above[i + 3]) / 255;
    for (let c = i; c < i + 3; c++) below[c] += share * (above[c] - below[c]);
  }
}
