/** A network of the user's own: how it takes pictures, as photographs tell; shown, and changed by hand. */
import type { Convention, Pair } from "./conventions";
import { $, label, reason, say } from "./dom";
import { fetchFile } from "./download";
import type { Engine } from "./engine";
import type { Student } from "./manifest";
import { strings } from "./strings";
// By which a network is tried: black, white and colours, which many photos lack. Eileen Collins (NASA, public
// domain), from scikit-image's photograph.
import portrait from "./portrait.jpg?url";

const SELECTS = ["input", "output", "channels", "layout"] as const;

export class OwnControls {
  private readonly panel = $<HTMLDetailsElement>("own");
  private readonly files = new Map<Student, File>(); // from which networks came

  private asked: Student | null = null; // which network the panel is about

  /** `take`: draw with this one, in the place of an earlier one. */
  constructor(
    private readonly engine: Engine,
    private readonly take: (student: Student, before: Student | null) => void,
  ) {
    $("own-take").addEventListener("click", () => void this.retake());
  }

  /** A network, which draws at once where it is known how it takes pictures. */
  async open(file: File, name: string, kind: Student["kind"]): Promise<void> {
    say(strings.own.trying(name));
    try {
      const student = await this.adopt(file, name, kind, {});
      if (student.convention) this.take(student, null);
      this.show(student);
      if (!student.convention) say(strings.own.doubtful(name));
    } catch (error) {
      say(strings.own.refused(file.name, reason(error)));
    }
  }

  /** The panel is there for a network of one's own. */
  show(student: Student): void {
    this.asked = this.files.has(student) ? student : null;
    this.panel.hidden = !this.asked;
    if (!this.asked) return;
    const { convention, name, fixed } = student;
    this.panel.open = !convention;
    label($("own-title"), strings.own.takes(name));
    const said = [convention ? strings.own.found : strings.own.doubtful(name), fixed ? strings.own.fixed(fixed[1], fixed[0]) : ""];
    label($("own-said"), said.join(" ").trim());
    if (convention) for (const each of SELECTS) this.select(each).value = String(convention[each]);
  }

  private async retake(): Promise<void> {
    const before = this.asked;
    if (!before) return;
    say("");
    const range = (each: "input" | "output") => this.select(each).value.split(",").map(Number) as unknown as Pair;
    const said = {
      input: range("input"),
      output: range("output"),
      channels: this.select("channels").value as Convention["channels"],
      layout: this.select("layout").value as Convention["layout"],
    };
    const file = this.files.get(before)!;
    try {
      const student = await this.adopt(file, before.name, before.kind, said);
      this.files.delete(before);
      this.engine.forget(before.file);
      this.take(student, before);
      this.show(student);
      label($("own-said"), "");
      this.panel.open = true;
    } catch (error) {
      say(strings.own.refused(file.name, reason(error)));
    }
  }

  private async adopt(file: File, name: string, kind: Student["kind"], said: Partial<Convention>): Promise<Student> {
    const photo = await createImageBitmap(await fetchFile(portrait));
    const student = await this.engine.adopt({ name, kind, bytes: await file.arrayBuffer(), photo, said });
    this.files.set(student, file);
    return student;
  }

  private select(name: (typeof SELECTS)[number]): HTMLSelectElement {
    return $<HTMLSelectElement>(`own-${name}`);
  }
}
