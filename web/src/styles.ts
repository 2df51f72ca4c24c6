/** The style picker: one radio button with a small picture for each student. */
import { $ } from "./dom";
import type { Student } from "./manifest";

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
    label.append(input, thumbnail(student), student.name);
    field.append(label);
  }
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
    icon.firstElementChild!.setAttribute("href", "#i-pen");
    frame.append(icon);
  }
  return frame;
}

const ascending = (a: number, b: number) => a - b;
const SIZES = [128, 192, 256, 320, 384, 512];

/** The resolutions a student knows. */
export function listSizes(student: Student, chosen: number): number {
  const { fixed, side } = student;
  const sizes = fixed ? [Math.max(...fixed)] : [...new Set([...SIZES, side])].sort(ascending);
  const now = sizes.includes(chosen) ? chosen : fixed ? sizes[0] : side;
  const select = $<HTMLSelectElement>("size");
  select.replaceChildren(...sizes.map((s) => new Option(`${s} px`, String(s), false, s === now)));
  select.disabled = sizes.length === 1;
  return now;
}
