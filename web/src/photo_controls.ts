/** The photo view's controls: camera, pictures, videos, mirror. */
import { Camera } from "./camera";
import { CameraSession, type CameraScreen } from "./camera_session";
import { $, caption, pressed, reason, say, unsay } from "./dom";
import { fetchFile } from "./download";
import { cropped, shaped, turned, UNEDITED, type Edit } from "./edit";
import { isVideo } from "./file_input";
import { filling } from "./fit";
import type { FilmControls } from "./film_controls";
import { keepPicture, keptPicture, type KeptPicture } from "./kept_picture";
import type { LiveLoop } from "./live_loop";
import type { LoadingBar } from "./loading";
import type { OutputControls } from "./output_controls";
import type { Preferences } from "./preferences";
import type { Size } from "./protocol";
import { encoded, stamped, stem } from "./save";
import type { SaveControls } from "./save_controls";
import { Picture, play, type Source, type Video } from "./sources";
import { strings } from "./strings";
import type { Zoom } from "./zoom";

const UNDONE = 20; // pictures that are remembered

/** What is shown where there is no camera; `stem`: what files made of it are called after. */
interface Shown extends KeptPicture {
  /** Pixels of the file's own picture, where it is one, and whether parts of it are see-through. */
  full?: Size;
  clear?: boolean;
}

export class PhotoControls implements CameraScreen {
  private readonly camera = new Camera();
  private readonly session = new CameraSession(this.camera, this);
  private shown: Shown | null = null;
  private readonly before: Shown[] = []; // what was shown before, for undo
  private sample: Blob | null = null;
  private inFront = true;
  private chosen = 0; // pictures and cameras that the user asked for
  private stalled = "";
  private video: Video | null = null; // of the camera, while it gives frames
  /** Draws the video that is shown. */
  film: FilmControls | null = null;
  /** Saves what is shown. */
  save: SaveControls | null = null;

  constructor(
    private readonly live: LiveLoop,
    private readonly output: OutputControls,
    private readonly preferences: Preferences,
    private readonly example: string,
    private readonly zoom: Zoom,
    private readonly bar: LoadingBar,
    private readonly leaveSketch: () => void,
  ) {
    $("camera").addEventListener("click", () => this.toggleCamera());
    $("flip").addEventListener("click", () => this.flip());
    $("freeze").addEventListener("click", () => void this.freeze());
    $("mirror").addEventListener("click", () => this.toggleMirror());
    $("example").addEventListener("click", () => this.openExample());
    $("turn").addEventListener("click", () => {
      const times = this.live.mirror ? [1, 2, 3] : [1]; // to the right as it is seen
      this.edit((edit) => times.reduce(turned, edit));
    });
    $("crop").addEventListener("click", () => this.edit((edit) => cropped(edit, this.zoom.seen, this.live.mirror)));
    $("shape").addEventListener("change", ({ target }) => this.cut(Number((target as HTMLSelectElement).value)));
    $("undo-edit").addEventListener("click", () => void this.undo());
    document.addEventListener("keydown", (event) => {
      const typed = (event.target as Element).closest("input:not([type=range], [type=radio], [type=checkbox]), textarea");
      if (event.key !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey || !this.inFront || typed) return;
      event.preventDefault();
      void this.undo();
    });
    $("keep").addEventListener("change", ({ target }) => this.keep((target as HTMLInputElement).checked));
    document.addEventListener("visibilitychange", () => {
      this.follow();
      // The canvas of a tab that was in the background would else keep an old frame.
      if (!document.hidden) this.live.again();
    });
  }

  /** The picture of the last time; else the example, and then the camera where the user has allowed it before; else a button asks. */
  async begin(): Promise<void> {
    this.follow();
    const kept = this.preferences.get("keep") ? await keptPicture() : null;
    if (kept && !this.chosen) await this.show(kept);
    if (this.shown) return;
    await this.showExample();
    const name = "camera" as PermissionName;
    const permission = await navigator.permissions?.query({ name }).catch(() => null);
    if (permission?.state === "granted" && !this.chosen) this.session.want(true);
    this.label();
  }

  /** Whether what is shown does not move. */
  get still(): boolean {
    return !this.session.on && !this.shown?.file.type.startsWith("video/");
  }

  /** What files made of what is shown are called after. */
  get source(): string {
    return this.session.on || !this.shown ? stamped("camera") : this.shown.stem;
  }

  /** Whether this view is the one in front: the camera runs only then. */
  bringToFront(inFront: boolean): void {
    this.inFront = inFront;
    this.follow();
  }

  start(video: Video): void {
    this.setMirror(this.preferences.get("mirror") ?? this.camera.front);
    this.live.use(video);
    this.video = video;
    $("flip").hidden = !this.camera.several;
    $("freeze").hidden = false;
  }

  pause(): void {
    this.live.use(null);
    this.video = null;
    $("freeze").hidden = true;
  }

  /** The camera's picture of this moment, from now on as if it had been opened. */
  private async freeze(): Promise<void> {
    const { video } = this;
    if (!video) return;
    say("");
    const { mirror } = this.live;
    try {
      const frame = await video.now();
      const { left, top, width, height } = filling(frame, this.live.shape);
      const canvas = Object.assign(document.createElement("canvas"), { width, height });
      canvas.getContext("2d")!.drawImage(frame, -left, -top);
      frame.close();
      await this.show({ file: await encoded(canvas), name: strings.files.unnamed, stem: stamped("camera"), mirror }, true);
    } catch (error) {
      say(reason(error));
    }
  }

  /** In whatever view the user is: the photo's own goes back to the picture behind it. */
  async fail(why: string): Promise<void> {
    this.label();
    await this.showBefore();
    say(why);
  }

  stall(why: string | null): void {
    unsay(this.stalled);
    this.stalled = why ?? "";
    if (why) say(why);
  }

  private follow(): void {
    this.session.draw(this.inFront && !document.hidden);
  }

  /** Fetched once: the camera must stop even where the server has gone. */
  private async showExample(): Promise<void> {
    const turn = this.chosen;
    try {
      this.sample ??= await fetchFile(this.example);
    } catch (error) {
      if (turn === this.chosen) this.live.use(null);
      return say(reason(error));
    }
    const shown = { file: this.sample, name: strings.files.example, stem: "example", mirror: false };
    if (turn === this.chosen) await this.show(shown);
  }

  /** A picture of the user's own, and no film, is there again the next time. */
  private keep(wanted: boolean): void {
    const { shown } = this;
    const own = wanted && shown?.full && shown.file !== this.sample ? shown : null;
    void keepPicture(own && { file: own.file, name: own.name, stem: own.stem, mirror: own.mirror, edit: own.edit });
  }

  private async openExample(): Promise<void> {
    this.chosen += 1;
    this.keep(false);
    say("");
    this.session.want(false);
    this.label();
    await this.showExample();
  }

  async openFile(file: File): Promise<void> {
    this.leaveSketch();
    const shown = { file, name: file.name || strings.files.unnamed, stem: stem(file.name) || "picture", mirror: false };
    await this.show(shown, true);
  }

  /** The picture that is shown, turned or cropped otherwise. */
  private edit(change: (edit: Edit) => Edit): void {
    const { shown } = this;
    if (this.session.on || !shown?.full) return;
    const edit = change(shown.edit ?? UNEDITED);
    void this.show({ ...shown, mirror: this.live.mirror, edit }, true);
  }

  /** To the middle in another shape; 0: all of the picture. */
  private cut(shape: number): void {
    const { full } = this.shown ?? {};
    this.edit((edit) => (shape && full ? cropped(edit, shaped(full, shape), false) : { ...edit, box: UNEDITED.box }));
  }

  private async undo(): Promise<void> {
    const before = this.before.pop();
    if (!before) return;
    this.shown = null;
    await this.show(before, true);
  }

  /** `asked`: by the user, so that no camera comes in its place, however late it is allowed. */
  private async show(shown: Shown, asked = false): Promise<void> {
    const turn = asked ? ++this.chosen : this.chosen;
    const video = isVideo(shown.file);
    const opening = (over: boolean) => this.bar.take({ file: shown.name, loaded: 0, total: null, over });
    let source: Source;
    try {
      opening(false); // a very large picture takes seconds
      source = await (video ? play(shown.file) : Picture.read(shown.file, shown.edit));
    } catch {
      return say(video ? strings.files.noVideo(shown.name) : strings.files.noPicture(shown.name));
    } finally {
      opening(true);
    }
    if (turn !== this.chosen) return source.stop();
    this.session.want(false);
    if (asked) say("");
    const { full, clear } = source instanceof Picture ? source : {};
    if (asked && this.shown) this.before.push({ ...this.shown, mirror: this.session.on ? this.shown.mirror : this.live.mirror });
    this.before.splice(0, this.before.length - UNDONE);
    this.shown = { ...shown, full, clear };
    this.zoom.to(1);
    if (asked) this.keep(this.preferences.get("keep"));
    this.setMirror(shown.mirror);
    this.live.use(source);
    this.label();
  }

  /** As if the page had just been opened. */
  forget(): void {
    this.keep(false);
    this.setMirror(this.session.on && this.camera.front);
    this.live.again();
  }

  /** What was there before the camera, or before its film was drawn. */
  async showBefore(): Promise<void> {
    if (this.shown) await this.show(this.shown);
    else await this.showExample();
  }

  private async toggleCamera(): Promise<void> {
    this.chosen += 1;
    say("");
    if (this.shown && !this.session.on) this.shown.mirror = this.live.mirror;
    this.session.want(!this.session.on);
    if (this.session.on) this.keep(false);
    this.label();
    if (!this.session.on) await this.showBefore();
  }

  private flip(): void {
    say("");
    this.session.flip();
  }

  private toggleMirror(): void {
    this.setMirror(!this.live.mirror);
    this.live.again();
    if (!this.session.on) return; // of one picture, which others do not follow
    const { mirror } = this.live;
    this.preferences.set("mirror", mirror === this.camera.front ? undefined : mirror);
  }

  private setMirror(on: boolean): void {
    this.live.mirror = on;
    pressed($("mirror"), on);
  }

  private label(): void {
    caption($("camera"), this.session.on ? strings.camera.stop : null);
    if (!this.session.on) $("flip").hidden = true;
    const file = this.session.on ? null : this.shown?.file;
    const video = file && isVideo(file) ? file : null;
    this.output.offerFilm(this.session.on ? "camera" : video && "video");
    this.film?.offer(video);
    const { full, clear = false } = this.shown ?? {};
    const picture = file && !video && full ? { file, full, clear, edit: this.shown?.edit ?? UNEDITED } : null;
    this.save?.offer(picture);
    $("edit").hidden = $("extras").hidden = !picture;
    $<HTMLButtonElement>("undo-edit").disabled = !this.before.length;
    if (!this.shown?.edit) $<HTMLSelectElement>("shape").value = "0";
  }
}
