/** The style picker: one radio button with a small picture for each student. */
import { $ } from "./dom";
import type { Engine } from "./engine";
import type { Student } from "./manifest";
import { pixels } from "./numbers";
import type { Size } from "./protocol";
import { sizesOf, stillSide } from "./sizes";
import { strings } from "./strings";

const AUTOMATIC = "auto";
const THUMBNAIL: Size = { width: 256, height: 192 }; // pixels that a network draws for one

const REST = 200; // ms until the next look at whether there is time for one

const drawn = new Map<string, string>(); // thumbnails of the user's own picture, by the student's file

export function listStyles(students: Student[], chosen: Student, take: (s: Student) => void): void {
  const field = $("styles");
  field.querySelectorAll(".style").forEach((old) => old.remove());
  for (const student of students) {
    const label = document.createElement("label");
    label.className = "style";
    const input = Object.assign(document.createElement("input"), {
      type: "radio",
      name: "style",
      value: student.name,
      checked: student === chosen,
    });
    input.addEventListener("change", () => take(student));
    label.append(input, thumbnail(student), styleName(student));
    if (student.commercial === "no")
      label.append(Object.assign(document.createElement("small"), { textContent: strings.network.nonCommercial }));
    field.append(label);
  }
}

/** As people read it: "Hayao small"; a network of one's own as its user wrote it. */
export function styleName({ name, file }: Pick<Student, "name" | "file">): string {
  if (file.startsWith("own:")) return name;
  return strings.styles[name] ?? name[0].toUpperCase() + name.slice(1).replace(/[-_]+/g, " ");
}

/** Tick a student without taking it; the keyboard's focus stays where it is. */
export function showStyle({ name }: Student): void {
  for (const input of $("styles").querySelectorAll("input")) input.checked = input.value === name;
}

function thumbnail(student: Student): HTMLElement {
  const frame = Object.assign(document.createElement("span"), { className: "thumbnail" });
  frame.dataset.file = student.file;
  const src = drawn.get(student.file) ?? student.thumbnail;
  if (src) {
    frame.append(Object.assign(new Image(), { src, alt: "" }));
  } else {
    const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    icon.append(document.createElementNS(icon.namespaceURI, "use"));
    icon.firstElementChild!.setAttribute("href", student.kind === "sketch" ? "#i-pen" : "#i-example");
    frame.append(icon);
  }
  return frame;
}

/** Draws the thumbnails of what is shown: those in sight, one at a time, while nothing else is drawn. */
export class OwnThumbnails {
  private work = new AbortController();

  constructor(
    private readonly engine: Engine,
    private readonly students: Student[],
    private readonly busy: () => boolean,
  ) {}

  /** Of another picture from now on, which is on this canvas. Not where the user saves data. */
  async draw(photo: HTMLCanvasElement): Promise<void> {
    this.work.abort();
    const { signal } = (this.work = new AbortController());
    if ((navigator as { connection?: { saveData?: boolean } }).connection?.saveData) return;
    const scale = Math.min(photo.width / THUMBNAIL.width, photo.height / THUMBNAIL.height);
    const [width, height] = [THUMBNAIL.width * scale, THUMBNAIL.height * scale].map(Math.round);
    const options = { resizeWidth: THUMBNAIL.width, resizeHeight: THUMBNAIL.height, resizeQuality: "high" } as const;
    const frame = await createImageBitmap(photo, (photo.width - width) >> 1, (photo.height - height) >> 1, width, height, options);
    const left = new Set(this.students.filter(({ kind, convention }) => kind === "photo" && convention !== null));
    while (left.size && !signal.aborted) {
      const next = [...left].find(({ file }) => inSight(file));
      if (next && !this.busy() && !document.hidden) {
        left.delete(next);
        await this.one(next, frame, signal).catch(() => {}); // what is missing is said where it is chosen
      } else await new Promise((again) => setTimeout(again, REST));
    }
    frame.close();
  }

  private async one(student: Student, frame: ImageBitmap, signal: AbortSignal): Promise<void> {
    const wanted = { student, frame: await createImageBitmap(frame) };
    const file = await this.engine.drawFull(wanted, { type: "image/jpeg", quality: 0.85 }, signal);
    if (!file || signal.aborted) return;
    URL.revokeObjectURL(drawn.get(student.file) ?? "");
    drawn.set(student.file, URL.createObjectURL(file));
    thumbnailOf(student.file)?.replaceWith(thumbnail(student));
  }
}

function thumbnailOf(file: string): HTMLElement | null {
  return document.querySelector(`.thumbnail[data-file="${CSS.escape(file)}"]`);
}

/** Whether a thumbnail is in sight, or nearly. */
function inSight(file: string): boolean {
  const box = thumbnailOf(file)?.getBoundingClientRect();
  return !!box?.width && box.left < innerWidth && box.right > 0 && box.top < innerHeight && box.bottom > 0;
}

/** List a student's resolutions; gives the chosen one, or where that is not known its own. */
export function listSizes(student: Student, chosen: number, automatic: boolean): number {
  const sizes = sizesOf(student);
  const known = sizes.includes(chosen) || (automatic && stillSide(student, chosen) === chosen); // the screen's
  const now = known ? chosen : student.fixed ? sizes[0] : student.side;
  const select = $<HTMLSelectElement>("size");
  const options = sizes.map((size) => new Option(pixels(size), String(size)));
  if (sizes.length > 1) options.unshift(new Option(strings.automatic(now), AUTOMATIC));
  select.replaceChildren(...options);
  select.value = automatic && sizes.length > 1 ? AUTOMATIC : String(now);
  select.disabled = sizes.length === 1;
  return now;
}

/** The resolution that was picked; null where the machine's speed is to choose it. */
export function pickedSize(): number | null {
  const { value } = $<HTMLSelectElement>("size");
  return value === AUTOMATIC ? null : Number(value);
}
