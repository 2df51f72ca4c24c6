/** The film of an opened video: every frame drawn, with a bar, until it is saved or cancelled. */
import { $, caption, pressed, reason, say } from "./dom";
import { even } from "./fit";
import type { LiveLoop } from "./live_loop";
import { workBar } from "./loading";
import { hasAlpha } from "./recorder";
import { saveFile } from "./save";
import { strings } from "./strings";
import type { Viewer } from "./viewer";

/** What draws films: most visitors bring no video, so it comes when it is wanted. */
export const loadFilms = () => import("./drawn_film");

/** Whether this browser reads and writes films frame by frame. */
export function canDrawFilms(): boolean {
  return typeof VideoEncoder !== "undefined" && typeof VideoDecoder !== "undefined";
}

export class FilmControls {
  private video: Blob | null = null;
  private work: AbortController | null = null;

  /** `title` names the film; `resume` shows the video again, once it is drawn. */
  constructor(
    private readonly live: LiveLoop,
    private readonly viewer: Viewer,
    private readonly title: () => string,
    private readonly resume: () => void,
  ) {
    $("film").addEventListener("click", () => {
      if (this.work) this.work.abort();
      else if (this.video) void this.draw(this.video);
    });
  }

  /** The video that is shown; null where something else is. A film of another one ends. */
  offer(video: Blob | null): void {
    if (video !== this.video) this.work?.abort();
    this.video = video;
    $("film").hidden = !video || !canDrawFilms();
  }

  private async draw(video: Blob): Promise<void> {
    const work = (this.work = new AbortController());
    say("");
    this.live.use(null);
    this.label(true);
    const report = workBar("film");
    try {
      const { drawFilm } = await loadFilms();
      const size = even(this.viewer.size);
      const { clear } = this.viewer;
      const canvas = Object.assign(document.createElement("canvas"), size);
      let fresh = true;
      const draw = async (frame: ImageBitmap) => {
        await this.live.draw(frame, fresh);
        fresh = false;
        this.viewer.fill(canvas);
        return canvas;
      };
      const drawn = await drawFilm(video, size, clear, draw, report, work.signal);
      if (drawn) {
        saveFile(drawn.film, this.title());
        const opaque = clear && !(await hasAlpha(drawn.film));
        say(opaque ? strings.film.opaque : strings.video.done(drawn.frames, drawn.silent));
      }
    } catch (error) {
      if (!work.signal.aborted) say(strings.video.failed(reason(error)));
    }
    this.work = null;
    report(null);
    this.label(false);
    if (video === this.video) this.resume();
  }

  private label(on: boolean): void {
    pressed($("film"), on);
    caption($("film"), on ? strings.video.cancel : null);
  }
}
