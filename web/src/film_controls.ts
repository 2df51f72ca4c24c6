/** The film of an opened video: every frame drawn, with a bar, until it is saved or cancelled. */
import { $, label, pressed, reason, say } from "./dom";
import { even } from "./fit";
import type { LiveLoop } from "./live_loop";
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

  /** `style` names the film; `resume` shows the video again, once it is drawn. */
  constructor(
    private readonly live: LiveLoop,
    private readonly viewer: Viewer,
    private readonly style: () => string,
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
    const begun = performance.now();
    this.tell(0, 0);
    try {
      const { drawFilm } = await loadFilms();
      const size = even(this.viewer.size);
      const canvas = Object.assign(document.createElement("canvas"), size);
      let fresh = true;
      const draw = async (frame: ImageBitmap) => {
        await this.live.draw(frame, fresh);
        fresh = false;
        this.viewer.fill(canvas);
        return canvas;
      };
      const report = (share: number) => this.tell(share, performance.now() - begun);
      const drawn = await drawFilm(video, size, draw, report, work.signal);
      if (drawn) {
        saveFile(drawn.film, this.style());
        say(this.viewer.clear ? strings.film.opaque : strings.video.done(drawn.frames, drawn.silent));
      }
    } catch (error) {
      if (!work.signal.aborted) say(strings.video.failed(reason(error)));
    }
    this.work = null;
    this.tell(null, 0);
    if (video === this.video) this.resume();
  }

  /** The share that is done, after so many ms; null: nothing is being drawn. */
  private tell(share: number | null, ms: number): void {
    const on = share !== null;
    $("film-progress").hidden = !on;
    pressed($("film"), on);
    label($("film").querySelector("span")!, on ? strings.video.cancel : strings.video.draw);
    if (!on) return;
    $<HTMLProgressElement>("film-bar").value = share;
    const left = share > 0.01 ? (ms / 1000) * (1 / share - 1) : null;
    label($("film-text"), strings.video.progress(Math.floor(100 * share), left));
  }
}
