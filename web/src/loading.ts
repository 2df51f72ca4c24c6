/** The bar that shows how much of the network and of its runtime has come. */
import { $, label, type Root } from "./dom";
import type { Progress } from "./protocol";
import { strings } from "./strings";

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
    const known = files.every((file) => file.total !== null);
    const total = files.reduce((sum, file) => sum + (file.total ?? 0), 0);
    if (known) [this.bar.max, this.bar.value] = [total || 1, loaded];
    else this.bar.removeAttribute("value"); // moves, and tells no share
    const text = loaded ? strings.loading(loaded, known ? total : null) : strings.asking;
    label($("loading-text", this.root), text);
  }
}
