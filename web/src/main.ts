/** The page: the manifest's students, live. */
import { $, label, pressed, reason, say } from "./dom";
import { Engine } from "./engine";
import { LiveLoop } from "./live_loop";
import { loadManifest, type Manifest, type Student } from "./manifest";
import { Meter } from "./meter";
import { exposePageApi } from "./page_api";
import { PhotoControls } from "./photo_controls";
import type { Backend, BackendChoice } from "./protocol";
import { SketchView } from "./sketch_view";
import { listSizes, listStyles, showStyle } from "./styles";
import { Viewer } from "./viewer";

type Kind = Student["kind"];

class Page {
  private readonly engine = new Engine(backendChoice());
  private readonly meter = new Meter($("meter"));
  private readonly chosen: Partial<Record<Kind, Student>> = {};
  private kind: Kind = "photo";
  private side = 0;
  private live: LiveLoop | null = null;
  private sketchView: SketchView | null = null;

  constructor(private readonly manifest: Manifest) {
    for (const kind of ["photo", "sketch"] as const)
      this.chosen[kind] = manifest.students.find((student) => student.kind === kind);
    const { photo, sketch } = this.chosen;
    if (photo) this.startPhotos(photo);
    if (sketch)
      this.sketchView = new SketchView(this.engine, (b) => this.tell(b), sketch, manifest);
    $("views").hidden = !(photo && sketch);
    $("view-photo").addEventListener("click", () => this.show("photo"));
    $("view-sketch").addEventListener("click", () => this.show("sketch"));
    $("size").addEventListener("change", () => this.resize());
    exposePageApi(this.engine, () => this.busy(), () => this.speed());
    this.show(photo ? "photo" : "sketch");
  }

  private startPhotos(student: Student): void {
    const viewer = new Viewer();
    this.side = listSizes(student, student.side);
    const tell = (backend: Backend) => this.tell(backend);
    const back = (earlier: Student, side: number) => this.goBack(earlier, side);
    this.live = new LiveLoop(this.engine, viewer, this.meter, tell, back, student, this.side);
    const style = () => this.chosen.photo!.name;
    const photos = new PhotoControls(this.live, viewer, this.manifest.example, style, () =>
      this.show("photo"),
    );
    void photos.showExample().then(() => photos.startIfAllowed());
  }

  private busy(): boolean {
    return (this.live?.working || this.sketchView?.working) ?? false;
  }

  private speed() {
    return (this.kind === "photo" ? this.meter : this.sketchView!.meter).speed();
  }

  private show(kind: Kind): void {
    if (!this.chosen[kind]) return;
    this.kind = kind;
    const sketch = kind === "sketch";
    for (const each of ["photo", "sketch"] as const) {
      $(`${each}-view`).hidden = each !== kind;
      pressed($(`view-${each}`), each === kind);
    }
    $("size-row").hidden = sketch;
    $("width-row").hidden = !sketch;
    const students = this.manifest.students.filter((student) => student.kind === kind);
    listStyles(students, this.chosen[kind]!, (student) => this.choose(student));
    this.nameTerms(this.chosen[kind]!);
    this.live?.pause(sketch);
    this.sketchView?.show(sketch);
  }

  private choose(student: Student): void {
    this.chosen[this.kind] = student;
    this.nameTerms(student);
    say("");
    if (this.kind === "sketch") return this.sketchView!.choose(student);
    this.side = listSizes(student, this.side);
    this.live!.choose(student, this.side);
  }

  /** The chosen one cannot run: the pickers show the earlier one again. */
  private goBack(student: Student, side: number): void {
    this.chosen.photo = student;
    this.side = listSizes(student, side);
    if (this.kind !== "photo") return;
    showStyle(student);
    this.nameTerms(student);
  }

  private resize(): void {
    say("");
    this.side = Number($<HTMLSelectElement>("size").value);
    this.live!.choose(this.chosen.photo!, this.side);
  }

  private nameTerms({ name, licence }: Student): void {
    label($("licence"), licence && `Terms of ${name}: ${licence}.`);
  }

  private tell({ name, threads, why }: Backend): void {
    const count = `${threads} ${threads === 1 ? "thread" : "threads"}`;
    label($("backend"), name === "WASM" ? `WASM, ${count}` : name);
    label($("why"), `${name === "WASM" ? `WASM, ${count}` : name}: ${why}.`);
  }
}

/** For those who compare: ?backend=wasm or ?backend=webgpu, &threads=1, in the page's address. */
function backendChoice(): BackendChoice {
  const wanted = new URLSearchParams(location.search);
  const backend = wanted.get("backend");
  const threads = Math.floor(Number(wanted.get("threads")));
  return {
    backend: backend === "wasm" || backend === "webgpu" ? backend : null,
    threads: threads >= 1 && threads <= 64 ? threads : null,
  };
}

loadManifest().then(
  (manifest) => new Page(manifest),
  (error) => say(`The page's own files are not complete: ${reason(error)}`),
);
