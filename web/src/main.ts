/** The page: the manifest's students, live. */
import type { AutoSize } from "./auto_size";
import type { Choice } from "./chosen_student";
import { $, label, pressed, reason, say } from "./dom";
import { Engine } from "./engine";
import { isNetwork, onFile } from "./file_input";
import { Extras } from "./extras";
import { FilmControls } from "./film_controls";
import { LiveLoop } from "./live_loop";
import { LoadingBar } from "./loading";
import { loadManifest, type Manifest, type Student } from "./manifest";
import { Meter } from "./meter";
import { LookControls } from "./look_controls";
import { keepForOffline, startOffline } from "./offline/offline";
import { OutputControls } from "./output_controls";
import { OwnControls } from "./own_controls";
import { exposePageApi } from "./page_api";
import { Preferences } from "./preferences";
import { PartControls } from "./part_controls";
import { PhotoControls } from "./photo_controls";
import { TRIALS, type Backend, type BackendChoice, type Times } from "./protocol";
import { encoded } from "./save";
import { SaveControls } from "./save_controls";
import { Sheet } from "./sheet";
import { automatic } from "./sizes";
import { SketchView } from "./sketch_view";
import { language, strings, translatePage } from "./strings";
import { OwnThumbnails, listSizes, listStyles, pickedSize, showStyle, styleName } from "./styles";
import { connectToolbars } from "./toolbar";
import { Viewer } from "./viewer";
import { Zoom } from "./zoom";

type Kind = Student["kind"];

const RESIZED = 300; // ms without a change of the window's size

class Page {
  private readonly meter = new Meter($("meter"));
  private readonly preferences = new Preferences();
  private readonly chosen: Partial<Record<Kind, Student>> = {};
  private kind: Kind = "photo";
  private side = 0;
  private auto: AutoSize | null = null; // where no resolution was picked
  private resized = 0; // the timer of a look at the window's new size
  private told = false; // where the network runs, which is known once it does
  private live: LiveLoop | null = null;
  private viewer: Viewer | null = null;
  private photos: PhotoControls | null = null;
  private part: PartControls | null = null;
  private look: LookControls | null = null;
  private readonly sheet = new Sheet((shape) => {
    if (this.live) this.live.shape = shape;
    this.look?.show();
  });
  private sketchView: SketchView | null = null;
  private readonly own: OwnControls;

  constructor(
    private readonly engine: Engine,
    private readonly manifest: Manifest,
    private readonly bar: LoadingBar,
  ) {
    this.own = new OwnControls(engine, (student, before) => this.takeOwn(student, before));
    for (const kind of ["photo", "sketch"] as const)
      this.chosen[kind] = this.preferred(kind);
    const { photo, sketch } = this.chosen;
    if (photo) this.startPhotos(photo);
    if (sketch)
      this.startSketches(sketch);
    $("views").hidden = !(photo && sketch);
    $("view-photo").addEventListener("click", () => this.show("photo"));
    $("view-sketch").addEventListener("click", () => this.show("sketch"));
    onFile((file) => void this.open(file));
    $("size").addEventListener("change", () => this.pickSize());
    connectToolbars();
    exposePageApi(this.engine, () => this.busy(), () => this.speed());
    this.show(photo ? "photo" : "sketch");
  }

  /** The student that was chosen the last time, or is asked for; else the first. */
  private preferred(kind: Kind): Student | undefined {
    const students = this.manifest.students.filter((student) => student.kind === kind);
    const name = this.preferences.get(kind === "photo" ? "style" : "sketch");
    return students.find((student) => student.name === name) ?? students[0];
  }

  private startPhotos(student: Student): void {
    const viewer = (this.viewer = new Viewer());
    this.size(student, this.preferences.get("size") ?? null);
    const tell = (backend: Backend) => this.tell(backend);
    const back = (choice: Choice) => this.mark("photo", choice);
    const first = { student, side: this.side };
    this.live = new LiveLoop(this.engine, viewer, this.meter, tell, back, first);
    const thumbnails = new OwnThumbnails(this.engine, this.manifest.students, () => this.live!.working && this.photos!.still);
    let fresh = false;
    this.live.onTimes = (times, drawn, still) => {
      label($("tag"), styleName(drawn.student));
      this.adapt(times, drawn, still);
      if (still) this.photos?.save?.describe();
      if (fresh) void thumbnails.draw($<HTMLCanvasElement>("photo"));
      fresh = false;
    };
    this.live.onSource = ({ still }) => {
      fresh = true;
      this.resize(this.auto?.begin(still));
    };
    // Of what draws: the chosen one may still be on its way.
    const title = () => `${this.photos!.source}-${(this.live!.now?.student ?? this.chosen.photo!).name}`;
    const output = new OutputControls(viewer, title, this.preferences);
    const { example, example_tall } = this.manifest;
    const sample = matchMedia("(max-aspect-ratio: 2/3)").matches ? example_tall : example;
    const leaveSketch = () => this.show("photo");
    const grown = () => {
      clearTimeout(this.resized);
      this.resized = window.setTimeout(() => void (viewer.outgrown && this.live!.again()), RESIZED);
    };
    addEventListener("resize", grown);
    const zoom = new Zoom((scale) => {
      viewer.magnified = this.photos?.still ? scale : 1;
      grown();
    });
    this.photos = new PhotoControls(this.live, output, this.preferences, sample, zoom, this.bar, leaveSketch);
    const { photos } = this;
    photos.film = new FilmControls(this.live, viewer, title, () => void photos.showBefore());
    photos.save = new SaveControls(this.engine, this.live, viewer, title, () => !this.auto, this.preferences);
    const now = () => ({ style: this.chosen.photo!.name, ...(this.auto ? {} : { size: this.side }) });
    const look = (this.look = new LookControls(viewer, this.live, this.preferences, now, () => this.forget()));
    const judge = () => {
      this.judge();
      look.show();
    };
    this.part = new PartControls(this.engine, this.live, viewer, this.preferences, judge, () => this.sketcher());
    new Extras(this.engine, viewer, this.manifest.students, title, () => photos.source, this.preferences);
    void this.photos.begin();
  }

  /** What draws sketches with transparency: what is chosen, else any that there is. */
  private sketcher(): Student | undefined {
    const { sketch, photo } = this.chosen;
    return [sketch, photo, ...this.manifest.students].find((student) => student?.channels === 4);
  }

  private startSketches(student: Student): void {
    const tell = (backend: Backend) => this.tell(backend);
    const back = (choice: Choice) => this.mark("sketch", choice);
    this.sketchView = new SketchView(this.engine, tell, back, student, this.manifest);
    $("wear-sticker").addEventListener("click", () => void this.wearSticker());
  }

  private async wearSticker(): Promise<void> {
    const sticker = await encoded($<HTMLCanvasElement>("sticker"));
    this.show("photo");
    await this.part!.wear([new File([sticker], strings.wear.sketch)]);
  }

  /** A file that the user brought: a picture, or a network to draw with. */
  private async open(file: File): Promise<void> {
    if (isNetwork(file.name)) await this.adopt(file);
    else await (this.photos ?? this.sketchView!).openFile(file);
  }

  private async adopt(file: File): Promise<void> {
    const { students } = this.manifest;
    const taken = new Set(students.map(({ name }) => name));
    const stem = file.name.replace(/\.onnx$/i, "");
    let name = stem;
    for (let count = 2; taken.has(name); count++) name = `${stem} ${count}`;
    await this.own.open(file, name, this.kind);
  }

  /** Draw with a network of the user's own, in the place of an earlier one. */
  private takeOwn(student: Student, before: Student | null): void {
    const { students } = this.manifest;
    const at = before ? students.indexOf(before) : -1;
    if (at < 0) students.push(student);
    else students[at] = student;
    this.choose(student);
    this.list();
  }

  private list(): void {
    const students = this.manifest.students.filter(({ kind }) => kind === this.kind);
    listStyles(students, this.chosen[this.kind]!, (student) => this.choose(student));
    $("styles").hidden = this.kind === "sketch" && students.length < 2;
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
    $("size-row").hidden = $("look").hidden = sketch;
    $("width-row").hidden = !sketch;
    this.sheet.arrange(!sketch);
    this.list();
    this.nameTerms(this.chosen[kind]!);
    this.live?.pause(sketch);
    this.photos?.bringToFront(!sketch);
    this.sketchView?.show(sketch);
  }

  /** As if the page had never been opened: the first styles, each at the size it was made for. */
  private forget(): void {
    for (const kind of ["photo", "sketch"] as const) {
      const student = this.preferred(kind);
      if (student && student !== this.chosen[kind]) this.take(kind, student);
    }
    const { photo } = this.chosen;
    if (photo) this.live!.choose({ student: photo, side: this.size(photo, null) });
    void self.caches?.delete(TRIALS);
    this.photos?.forget();
    this.part?.forget();
    showStyle(this.chosen[this.kind]!);
  }

  private choose(student: Student): void {
    this.preferences.set(this.kind === "photo" ? "style" : "sketch", student.name);
    this.take(this.kind, student);
  }

  private take(kind: Kind, student: Student): void {
    this.chosen[kind] = student;
    this.nameTerms(this.chosen[this.kind]!);
    this.own.show(this.chosen[this.kind]!);
    say("");
    if (kind === "sketch") return this.sketchView!.choose(student);
    this.live!.choose({ student, side: this.size(student, this.auto ? null : this.side) });
  }

  /** Another one draws than the user chose, or the chosen one at last: the pickers show it. */
  private mark(kind: Kind, { student, side }: Choice): void {
    const failed = kind === "photo" && student === this.chosen.photo && side !== this.side;
    this.chosen[kind] = student;
    if (failed && this.auto) this.side = listSizes(student, this.auto.cannot(this.side, side), true);
    else if (kind === "photo") this.size(student, side, this.auto !== null);
    if (this.kind !== kind) return;
    showStyle(student);
    this.nameTerms(student);
  }

  private pickSize(): void {
    say("");
    const side = pickedSize();
    this.preferences.set("size", side ?? undefined);
    const student = this.chosen.photo!;
    this.live!.choose({ student, side: this.size(student, side) });
  }

  /** The side that a student draws at from now on, its own where none is given; it is kept to, or
   * (`free`) changed as the machine keeps up. */
  private size(student: Student, side: number | null, free = side === null): number {
    this.side = listSizes(student, side ?? student.side, free);
    this.auto = free ? automatic(student, this.side, () => this.viewer!.screenSide) : null;
    return this.side;
  }

  /** Inferences take another time than before: where that chooses the resolution, from here on. */
  private judge(): void {
    this.auto?.restart();
  }

  /** Another resolution, where what draws is slower than it should be, or might be larger. */
  private adapt(times: Times, drawn: Choice, still: boolean): void {
    const { photo } = this.chosen;
    if (!this.auto || !photo || drawn.student !== photo || drawn.side !== this.side) return;
    this.resize(this.auto.take(times, still));
  }

  /** Another resolution that was not picked, where it is another. */
  private resize(side: number | null | undefined): void {
    const student = this.chosen.photo!;
    if (!side || side === this.side) return;
    this.side = listSizes(student, side, true);
    this.live!.choose({ student, side });
  }

  private nameTerms(student: Student): void {
    const { licence } = student;
    const words = licence.split(/( \(|[:;,] |\))/).map((part) => strings.licences[part] ?? part).join("");
    label($("licence"), licence && strings.network.terms(styleName(student), words));
  }

  private tell({ name, threads, why }: Backend): void {
    if (!this.told) void this.engine.files().then((files) => keepForOffline(this.manifest, files));
    this.told = true;
    const where = name === "WASM" ? strings.backend.wasm(threads) : name;
    label($("backend"), where);
    label($("why"), strings.backend.reason(where, why));
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

translatePage();
void startOffline();
const bar = new LoadingBar();
// Its name tells the worker the language.
const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: language });
const engine = new Engine(worker, backendChoice(), (progress) => bar.take(progress));
loadManifest().then(
  (manifest) => new Page(engine, manifest, bar),
  (error) => say(strings.files.incomplete(reason(error))),
);
