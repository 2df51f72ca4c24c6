/** What else a picture may leave as: a short film from the photo to the drawing, and a wall of all styles. */
import { $, reason, say } from "./dom";
import type { Engine } from "./engine";
import { canDrawFilms, loadFilms } from "./film_controls";
import { workBar } from "./loading";
import type { Student } from "./manifest";
import type { Preferences } from "./preferences";
import type { Size } from "./protocol";
import { PNG, encoded, saveFile } from "./save";
import { strings } from "./strings";
import { styleName } from "./styles";
import type { Viewer } from "./viewer";

const SHAPES: Record<string, Size> = { "wipe-square": { width: 1080, height: 1080 }, "wipe-tall": { width: 1080, height: 1920 } };
const TILE = 480; // pixels of a long side on the wall
const GAP = 16;
const NAMED = 44; // pixels of a row of names
const WALL = { back: "#121317", text: "#eef0f4", font: "600 22px system-ui, sans-serif" };

export class Extras {
  /** `title` names what is shown, `source` the photo alone. */
  constructor(
    private readonly engine: Engine,
    private readonly viewer: Viewer,
    private readonly students: Student[],
    private readonly title: () => string,
    private readonly source: () => string,
    private readonly preferences: Preferences,
  ) {
    for (const [name, size] of Object.entries(SHAPES)) {
      $(name).hidden = !canDrawFilms();
      $(name).addEventListener("click", () => void this.carryOut("film", (report) => this.wipe(size, report), strings.video.failed));
    }
    $("wipe-about").hidden = !canDrawFilms();
    $("wall").addEventListener("click", () => void this.carryOut("save", (report) => this.wall(report), strings.full.failed));
  }

  /** With a bar, one at a time. */
  private async carryOut(bar: "film" | "save", work: (report: (share: number) => void) => Promise<string>, failed: (why: string) => string): Promise<void> {
    const buttons = $("extras").querySelectorAll("button");
    say("");
    const report = workBar(bar);
    for (const button of buttons) button.disabled = true;
    say(await work(report).catch((error) => failed(reason(error))));
    for (const button of buttons) button.disabled = false;
    report(null);
  }

  private async wipe(size: Size, report: (share: number) => void): Promise<string> {
    const { viewer } = this;
    const title = this.title();
    const photo = await createImageBitmap($<HTMLCanvasElement>("photo"));
    const drawing = viewer.picture(false);
    const { wipeFilm } = await loadFilms();
    const { film, frames } = await wipeFilm(photo, drawing, size, report);
    photo.close();
    saveFile(film, title);
    return strings.video.done(frames, false);
  }

  /** The photo and every style of it, those that cannot run left out. */
  private async wall(report: (share: number) => void): Promise<string> {
    const photo = $<HTMLCanvasElement>("photo");
    const scale = TILE / Math.max(photo.width, photo.height);
    const [width, height] = [photo.width, photo.height].map((side) => Math.round(side * scale));
    const frame = await createImageBitmap(photo, { resizeWidth: width, resizeHeight: height, resizeQuality: "high" });
    const students = this.students.filter(({ kind, convention }) => kind === "photo" && convention !== null);
    const tiles: [CanvasImageSource, string][] = [[frame, $("view-photo").textContent!]];
    for (const [i, student] of students.entries()) {
      const drawn = await this.draw(student, await createImageBitmap(frame)).catch(() => null);
      if (drawn) tiles.push([drawn, styleName(student)]);
      report((i + 1) / students.length);
    }
    const canvas = wallOf(tiles, { width, height });
    saveFile(await encoded(canvas, this.preferences.file), `${this.source()}-styles`);
    return strings.full.done(canvas.width, canvas.height);
  }

  private async draw(student: Student, frame: ImageBitmap): Promise<ImageBitmap | null> {
    const file = await this.engine.drawFull({ student, frame }, PNG);
    return file && createImageBitmap(file);
  }
}

/** Pictures of one size beside and below each other, nearly a square, with their names. */
function wallOf(tiles: [CanvasImageSource, string][], { width, height }: Size): HTMLCanvasElement {
  const [across, down] = [width + GAP, height + NAMED];
  const columns = Math.max(1, Math.min(tiles.length, Math.round(Math.sqrt((tiles.length * down) / across))));
  const rows = Math.ceil(tiles.length / columns);
  const canvas = Object.assign(document.createElement("canvas"), { width: columns * across + GAP, height: rows * down + GAP });
  const context = canvas.getContext("2d")!;
  context.fillStyle = WALL.back;
  context.fillRect(0, 0, canvas.width, canvas.height);
  Object.assign(context, { fillStyle: WALL.text, font: WALL.font, textAlign: "center", textBaseline: "middle" });
  tiles.forEach(([picture, name], i) => {
    const [left, top] = [GAP + (i % columns) * across, GAP + Math.floor(i / columns) * down];
    context.drawImage(picture, left, top, width, height);
    context.fillText(name, left + width / 2, top + height + NAMED / 2, width);
  });
  return canvas;
}
