/** Bars: how much of the network and of its runtime has come, how much of a work is done. */
import { $, label, type Root } from "./dom";
import { clock, megabytes, percent } from "./numbers";
import type { Progress } from "./protocol";
import { strings } from "./strings";

/** Shows the share that is done of some work, from now on, and for how long it goes on; null: it is over. */
export function workBar(name: "film" | "save"): (share: number | null) => void {
  const begun = performance.now();
  const show = (share: number | null) => {
    $(`${name}-progress`).hidden = share === null;
    if (share === null) return;
    $<HTMLProgressElement>(`${name}-bar`).value = share;
    const left = ((performance.now() - begun) / 1000) * (1 / share - 1);
    const done = Math.floor(100 * share);
    label($(`${name}-text`), share > 0.01 ? strings.video.progress(done, clock(left)) : percent(done));
  };
  show(0);
  return show;
}

export class LoadingBar {
  private readonly files = new Map<string, Progress>();
  private readonly bar: HTMLProgressElement;

  constructor(private readonly root: Root = document) {
    this.bar = $<HTMLProgressElement>("loading-bar", root);
  }

  /** Files that are done or given up count until all are. */
  take(progress: Progress): void {
    this.files.set(progress.file, progress);
    const files = [...this.files.values()];
    const over = files.every((file) => file.over);
    $("loading", this.root).hidden = over;
    if (over) return this.files.clear();
    const loaded = files.reduce((sum, file) => sum + file.loaded, 0);
    const known = files.every((file) => file.over || file.total !== null);
    const total = files.reduce((sum, file) => sum + (file.total ?? 0), 0);
    if (known) [this.bar.max, this.bar.value] = [total || 1, loaded];
    else this.bar.removeAttribute("value"); // moves, and tells no share
    const text = loaded ? strings.loading(megabytes(loaded), known ? megabytes(total) : null) : strings.asking;
    label($("loading-text", this.root), text);
  }
}
