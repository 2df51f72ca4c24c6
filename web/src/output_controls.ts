/** What leaves the page as it is shown: a picture shared or copied, a film, a loop. */
import { $, caption, pressed, reason, say } from "./dom";
import { canDrawFilms } from "./film_controls";
import { GifLoop } from "./gif_loop";
import { clock, decimal } from "./numbers";
import type { Preferences } from "./preferences";
import { Recorder, canRecord, hasAlpha } from "./recorder";
import { canCopy, canShare, copyPicture, encoded, saveFile, shareFile } from "./save";
import { strings } from "./strings";
import type { Viewer } from "./viewer";

const TICK = 500; // ms between two looks at a film's length

export class OutputControls {
  private film: Recorder | null = null;
  private loop: GifLoop | null = null;
  private starting = false;
  private timer = 0;

  constructor(
    private readonly viewer: Viewer,
    private readonly title: () => string,
    private readonly preferences: Preferences,
  ) {
    this.on("share", (picture, title) => picture.then((blob) => shareFile(blob, title)));
    this.on("copy", (picture) => copyPicture(picture).then(() => say(strings.copied)));
    // Phones share; where that is not to be had, the clipboard takes the picture.
    $("share").hidden = !canShare();
    $("copy").hidden = canShare() || !canCopy();
    $("record").addEventListener("click", () => void this.toggle());
    $("loop").addEventListener("click", () => this.beginLoop());
    document.addEventListener("copy", (event) => this.onCopy(event));
    viewer.onFrame = () => this.add();
  }

  /** Only what moves is filmed; a video file as a whole, where the browser can (film_controls). */
  offerFilm(moving: "camera" | "video" | null): void {
    const live = moving === "camera" || (moving === "video" && !canDrawFilms());
    $("record").hidden = !(live && canRecord());
    $("sound-row").hidden = $("record").hidden;
    $("steady-row").hidden = $("loop").hidden = !moving;
    if (!live) void this.stop();
    if (!moving) this.endLoop();
  }

  private on(name: string, hand: (picture: Promise<Blob>, title: string) => Promise<void>): void {
    $(name).addEventListener("click", () => {
      const kind = name === "share" ? this.preferences.file : undefined; // clipboards take PNG alone
      hand(encoded(this.viewer.picture(), kind), this.title()).catch((error) => say(reason(error)));
    });
  }

  /** Ctrl+C copies the picture, unless the user has marked some text. */
  private onCopy(event: ClipboardEvent): void {
    const marked = getSelection()?.toString();
    if (marked || $("copy").hidden || $("photo-view").hidden || !this.viewer.drawn) return;
    event.preventDefault();
    $("copy").click();
  }

  private async toggle(): Promise<void> {
    if (this.starting) return;
    if (this.film) return this.stop();
    say("");
    this.starting = true;
    try {
      const sound = this.preferences.get("sound");
      const mute = () => say(strings.film.silent);
      this.film = await Recorder.start(this.viewer.size, this.viewer.clear, sound, mute);
      this.add();
      this.timer = window.setInterval(() => this.tell(), TICK);
    } catch (error) {
      say(strings.film.notStarted(reason(error)));
    }
    this.starting = false;
    if ($("record").hidden) return this.stop(); // the camera went while the microphone was asked for
    this.tell();
  }

  private async stop(): Promise<void> {
    const { film } = this;
    if (!film) return;
    this.film = null;
    clearInterval(this.timer);
    this.tell();
    try {
      const made = await film.stop();
      saveFile(made, this.title());
      if (this.viewer.clear && !(await hasAlpha(made))) say(strings.film.opaque);
    } catch (error) {
      say(reason(error));
    }
  }

  private add(): void {
    if (this.film) this.viewer.fill(this.film.canvas);
    if (this.loop?.add((canvas) => this.viewer.fill(canvas))) void this.saveLoop(this.loop);
    if (this.loop) this.tellLoop();
  }

  private beginLoop(): void {
    if (this.loop) return this.endLoop();
    say("");
    this.loop = new GifLoop(this.viewer.size);
    this.tellLoop();
  }

  private endLoop(): void {
    this.loop = null;
    this.tellLoop();
  }

  private async saveLoop(loop: GifLoop): Promise<void> {
    this.endLoop();
    const title = this.title();
    try {
      saveFile(await loop.encode(), title);
      say(strings.loop.done);
    } catch (error) {
      say(reason(error));
    }
  }

  private tellLoop(): void {
    pressed($("loop"), this.loop !== null);
    caption($("loop"), this.loop && `${decimal(this.loop.left)} s`);
  }

  private tell(): void {
    pressed($("record"), this.film !== null);
    caption($("record"), this.film && strings.film.stop(clock(this.film.seconds)));
  }
}
