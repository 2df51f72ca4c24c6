/** A lens at work in an element's own tree, from the time it is in a document until it is not. */
import type { AutoSize } from "../auto_size";
import { Camera } from "../camera";
import { CameraSession, type CameraScreen } from "../camera_session";
import type { Choice } from "../chosen_student";
import { $, label, reason } from "../dom";
import { fetchFile } from "../download";
import { Engine } from "../engine";
import { LiveLoop } from "../live_loop";
import { isNetwork } from "../file_input";
import { MOST, STRIDE } from "../fit";
import { LoadingBar } from "../loading";
import type { Student } from "../manifest";
import { FOUND_BY, type Part, type Times } from "../protocol";
import { encoded } from "../save";
import { Picture, type Video } from "../sources";
import { strings } from "../strings";
import { automatic } from "../sizes";
import { Viewer } from "../viewer";
import { startWorker } from "./start_worker";

/** What the owner of the element sets. */
export interface Look {
  /** Pixels of the longer side; 0: the network's own; "auto": what the machine keeps up with. */
  size: number | "auto";
  strength: number;
  parts: Part;
  steady: number;
  compare: boolean;
  mirror: boolean;
}

/** Told what happens. */
export interface Teller {
  ready(): void;
  drawn(ms: number): void;
  error(line: string): void;
}

/** What a line is about: it is taken back once that goes. */
type Topic = "network" | "picture";

const UNMEASURED = { add() {}, restart() {} };

export class Stage implements CameraScreen {
  private readonly viewer: Viewer;
  private readonly bar: LoadingBar;
  private readonly started = startWorker();
  private readonly engine: Engine;
  private readonly loop: LiveLoop;
  private readonly session = new CameraSession(new Camera(), this);
  private readonly ended = new AbortController();
  private readonly watcher: IntersectionObserver;
  private seen = false;
  private student: Student | null = null;
  private side = 0;
  private auto: AutoSize | null = null;
  private loads = 0;
  private shows = 0;
  private shown: Blob | null = null;
  private starting: { done: () => void; failed: (error: Error) => void } | null = null;
  private readonly said: Record<Topic, string> = { network: "", picture: "" };
  private readonly held = new Set<string>(); // files of networks that the worker keeps

  constructor(
    private readonly root: ShadowRoot,
    host: Element,
    runtime: string,
    private look: Look,
    private readonly teller: Teller,
  ) {
    this.viewer = new Viewer(root);
    this.bar = new LoadingBar(root);
    const choice = { backend: null, threads: null, runtime };
    this.engine = new Engine(this.started.worker, choice, (progress) => this.bar.take(progress));
    const lines = {
      say: (line: string) => this.report("network", line),
      unsay: (line: string) => this.unsay("network", line),
    };
    const back = (choice: Choice) => this.keep(choice);
    this.loop = new LiveLoop(this.engine, this.viewer, UNMEASURED, () => {}, back, null, lines);
    this.loop.onTimes = (times, drawn, still) => this.drawn(times, drawn, still);
    this.loop.onSource = ({ still }) => this.adapt(this.auto?.begin(still));
    const { signal } = this.ended;
    $("camera", root).addEventListener("click", () => this.toggle());
    const wake = () => {
      this.follow();
      // The canvas of a tab that was in the background would else keep an old frame.
      if (!document.hidden) this.loop.again();
    };
    document.addEventListener("visibilitychange", wake, { signal });
    this.watcher = new IntersectionObserver((entries) => {
      this.seen = entries.at(-1)!.isIntersecting;
      this.follow();
    });
    this.watcher.observe(host);
    this.viewer.strength = look.strength;
    this.viewer.compare = look.compare;
    this.loop.steady = look.steady;
    this.loop.mirror = look.mirror;
    void this.draw(look.parts);
  }

  /** For good: the worker ends, the camera goes off. */
  dispose(): void {
    this.loads += 1;
    this.shows += 1;
    this.ended.abort();
    this.watcher.disconnect();
    this.session.want(false);
    this.cancelStart();
    this.loop.stop();
    this.engine.dispose();
    this.started.release();
  }

  /** From now on; only what changes the network's input or size is computed again. */
  apply(look: Look): void {
    const { size, mirror, parts } = this.look;
    this.look = look;
    this.viewer.strength = look.strength;
    this.viewer.compare = look.compare;
    this.loop.steady = look.steady;
    this.loop.mirror = look.mirror;
    if (look.size !== size && this.student) this.resize(this.student);
    if (look.mirror !== mirror) this.loop.again();
    if (look.parts !== parts) void this.draw(look.parts);
  }

  /** Of a picture that part alone, once the network that finds it is there. */
  private async draw(part: Part): Promise<void> {
    const finder = FOUND_BY[part];
    try {
      if (finder) await this.engine.bringFinder(finder, `${finder}.onnx`);
    } catch (error) {
      return this.report("network", strings.part.missing[finder!](reason(error)));
    }
    if (part !== this.look.parts || part === this.loop.part) return;
    this.loop.part = part;
    this.auto?.restart();
    this.loop.again();
  }

  /** Another network; the one before goes on until it is there. */
  async load(address: string): Promise<void> {
    const turn = ++this.loads;
    if (!address) return;
    let [loaded, total] = [0, null as number | null];
    const tell = (over: boolean) => this.bar.take({ file: address, loaded, total, over });
    try {
      const file = await fetchFile(address, document.baseURI, (so, all) => {
        [loaded, total] = [so, all];
        tell(false);
      }).finally(() => tell(true));
      if (turn === this.loads) await this.adopt(fileName(address), file, turn);
    } catch (error) {
      if (turn === this.loads) this.report("network", reason(error));
    }
  }

  private async adopt(name: string, file: Blob, turn: number): Promise<void> {
    let student: Student;
    try {
      // Under a number: the same address may give another network the next time.
      student = await this.engine.adopt({ name: String(turn), kind: "photo", bytes: await file.arrayBuffer(), anySize: true });
    } catch (error) {
      throw new Error(`${name}: ${reason(error)}`);
    }
    this.held.add(student.file);
    if (turn !== this.loads) return;
    this.say("network", "");
    this.student = { ...student, name };
    this.auto = null;
    this.resize(this.student);
    this.teller.ready();
  }

  /** Show a picture. Throws an Error that says why not. */
  async open(what: Blob | string): Promise<void> {
    const turn = ++this.shows;
    try {
      const file = typeof what === "string" ? await fetchFile(what, document.baseURI) : what;
      const name = typeof what === "string" ? fileName(what) : (what as File).name || strings.files.unnamed;
      if (turn === this.shows && isNetwork(name)) await this.adopt(name, file, ++this.loads);
      else await this.show(file, name, turn);
      if (turn === this.shows) this.say("picture", "");
    } catch (error) {
      if (turn === this.shows) this.report("picture", reason(error));
      throw error;
    }
  }

  private async show(file: Blob, name: string, turn: number): Promise<void> {
    const picture = await Picture.read(file).catch(() => {
      throw new Error(strings.files.noPicture(name));
    });
    if (turn !== this.shows) return picture.stop();
    this.session.want(false);
    this.cancelStart();
    this.shown = file;
    this.loop.use(picture);
    this.label();
  }

  /** The picture that was shown last, also for the next time in a document. */
  get picture(): Blob | null {
    return this.shown;
  }

  /** The camera, for the user. Throws an Error that says why not. */
  startCamera(): Promise<void> {
    this.shows += 1;
    this.say("picture", "");
    return new Promise<void>((done, failed) => {
      this.cancelStart();
      if (this.session.on) return done();
      this.starting = { done, failed };
      this.session.want(true);
      this.label();
    });
  }

  stopCamera(): void {
    if (!this.session.on) return;
    this.session.want(false);
    this.cancelStart();
    this.label();
    this.back();
  }

  save(): Promise<Blob> {
    if (!this.viewer.drawn) return Promise.reject(new Error("nothing is drawn yet"));
    return encoded(this.viewer.picture());
  }

  start(video: Video): void {
    this.loop.use(video);
    this.starting?.done();
    this.starting = null;
  }

  pause(): void {
    this.loop.use(null);
  }

  /** The camera has gone, or never came. */
  fail(why: string): void {
    this.starting?.failed(new Error(why));
    this.starting = null;
    this.report("picture", why);
    this.label();
    this.back();
  }

  stall(why: string | null): void {
    if (why) this.say("picture", why);
    else this.unsay("picture", strings.camera.stalled);
  }

  private toggle(): void {
    if (this.session.on) this.stopCamera();
    else this.startCamera().catch(() => {}); // the message and the event say it
  }

  /** The picture from before the camera, if there was one. */
  private back(): void {
    const turn = ++this.shows;
    if (this.shown) this.show(this.shown, "", turn).catch(() => {});
  }

  private cancelStart(): void {
    this.starting?.failed(new Error("the camera was stopped before it started"));
    this.starting = null;
  }

  /** The camera runs where it is seen. */
  private follow(): void {
    this.session.draw(this.seen && !document.hidden);
  }

  private report(topic: Topic, line: string): void {
    if (this.ended.signal.aborted) return;
    this.say(topic, line);
    this.teller.error(line);
  }

  private label(): void {
    $("on", this.root).hidden = !this.session.on;
    $("off", this.root).hidden = this.session.on;
  }

  private say(topic: Topic, line: string): void {
    this.said[topic] = line;
    label($("message", this.root), this.said.network || this.said.picture);
  }

  private unsay(topic: Topic, line: string): void {
    if (line === this.said[topic]) this.say(topic, "");
  }

  private drawn(times: Times, { student, side }: Choice, still: boolean): void {
    this.teller.drawn(times.prepare + times.run + times.finish);
    if (student !== this.student) return;
    for (const file of this.held) {
      if (file === student.file) continue;
      this.held.delete(file); // there is no way back to it now
      this.engine.forget(file);
    }
    if (this.auto && side === this.side) this.adapt(this.auto.take(times, still));
  }

  private adapt(side: number | null | undefined): void {
    if (!side || side === this.side) return;
    this.side = side;
    this.loop.choose({ student: this.student!, side });
  }

  private resize(student: Student): void {
    const { size } = this.look;
    const free = size === "auto" && !student.fixed;
    if (!free) this.auto = null;
    else this.auto ??= automatic(student, student.side, () => this.viewer.screenSide);
    const own = this.auto?.side ?? student.side;
    this.side = size === "auto" || !size ? own : sound(size);
    this.loop.choose({ student, side: this.side });
  }

  /** What was chosen cannot run: an earlier one draws on, or the same one smaller. */
  private keep({ student, side }: Choice): void {
    if (student === this.student) this.auto?.cannot(this.side, side);
    else this.auto = null;
    [this.student, this.side] = [student, side];
  }
}

function sound(size: number): number {
  return Math.min(MOST, STRIDE * Math.max(2, Math.round(size / STRIDE)));
}

function fileName(address: string): string {
  return address.split(/[?#]/)[0].split("/").pop() || address;
}
