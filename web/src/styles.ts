/** The style picker: one radio button with a small picture for each student. */
import { $ } from "./dom";
import type { Student } from "./manifest";
import { sizesOf, stillSide } from "./sizes";
import { strings } from "./strings";

const AUTOMATIC = "auto";

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
    field.append(label);
  }
}

/** As people read it, with what it must not be used for: "Hayao · not for sale". */
function styleName({ name, file, commercial }: Student): string {
  if (file.startsWith("own:")) return name; // as its user wrote it
  const shown = name[0].toUpperCase() + name.slice(1).replace(/[-_]+/g, " ");
  return commercial === "no" ? strings.network.notForSale(shown) : shown;
}

/** Tick a student without taking it; the keyboard's focus stays where it is. */
export function showStyle({ name }: Student): void {
  for (const input of $("styles").querySelectorAll("input")) input.checked = input.value === name;
}

function thumbnail(student: Student): HTMLElement {
  const frame = Object.assign(document.createElement("span"), { className: "thumbnail" });
  if (student.thumbnail) {
    frame.append(Object.assign(new Image(), { src: student.thumbnail, alt: "" }));
  } else {
    const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    icon.append(document.createElementNS(icon.namespaceURI, "use"));
    icon.firstElementChild!.setAttribute("href", student.kind === "sketch" ? "#i-pen" : "#i-example");
    frame.append(icon);
  }
  return frame;
}

/** List a student's resolutions; gives the chosen one, or where that is not known its own. */
export function listSizes(student: Student, chosen: number, automatic: boolean): number {
  const sizes = sizesOf(student);
  const known = sizes.includes(chosen) || (automatic && stillSide(student, chosen) === chosen); // the screen's
  const now = known ? chosen : student.fixed ? sizes[0] : student.side;
  const select = $<HTMLSelectElement>("size");
  const options = sizes.map((size) => new Option(strings.pixels(size), String(size)));
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
