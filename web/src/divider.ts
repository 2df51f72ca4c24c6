/** Photo and stylised picture: a divider between them, dragged or moved with the arrow keys; or the photo while one holds the picture. */
import { $, type Root } from "./dom";
import { strings } from "./strings";

const STEP = 2; // per cent
const LEAP = 10;

export class Divider {
  /** Per cent from the left. */
  at = 50;
  private readonly handle: HTMLElement;
  private readonly viewer: HTMLElement;

  constructor(root: Root) {
    this.handle = $("divider", root);
    this.viewer = $("viewer", root);
    this.viewer.addEventListener("pointerdown", (event) => this.grab(event));
    this.handle.addEventListener("keydown", (event) => this.press(event));
    this.move(this.at);
  }

  move(percent: number): void {
    this.at = Math.min(100, Math.max(0, percent));
    this.viewer.style.setProperty("--split", `${this.at}%`);
    this.handle.setAttribute("aria-valuenow", String(Math.round(this.at)));
    this.handle.setAttribute("aria-valuetext", strings.divider(Math.round(this.at)));
  }

  /** A mouse may press anywhere on the picture; a finger takes the handle, and elsewhere holds the photo. */
  private grab(event: PointerEvent): void {
    const handle = this.handle.contains(event.target as Node);
    if (event.button !== 0 || (this.viewer.classList.contains("zoomed") && !handle)) return;
    const shown = this.handle.checkVisibility();
    if (!shown || (event.pointerType !== "mouse" && !handle)) return this.hold(event);
    event.preventDefault();
    this.handle.focus({ preventScroll: true });
    this.viewer.setPointerCapture(event.pointerId);
    const box = this.viewer.getBoundingClientRect();
    const follow = ({ clientX }: PointerEvent) =>
      this.move((100 * (clientX - box.left)) / box.width);
    const drop = () => this.viewer.removeEventListener("pointermove", follow);
    follow(event);
    this.viewer.addEventListener("pointermove", follow);
    this.viewer.addEventListener("lostpointercapture", drop, { once: true });
  }

  /** The photo alone, until the finger goes or scrolls. */
  private hold({ pointerId }: PointerEvent): void {
    const { viewer } = this;
    const over = new AbortController();
    viewer.classList.add("held");
    for (const name of ["pointerup", "pointercancel"])
      addEventListener(name, (event) => {
        if ((event as PointerEvent).pointerId !== pointerId) return;
        viewer.classList.remove("held");
        over.abort();
      }, { signal: over.signal });
    viewer.addEventListener("contextmenu", (event) => event.preventDefault(), { signal: over.signal });
  }

  private press(event: KeyboardEvent): void {
    const step = event.shiftKey ? LEAP : STEP;
    const target = {
      ArrowLeft: this.at - step,
      ArrowDown: this.at - step,
      ArrowRight: this.at + step,
      ArrowUp: this.at + step,
      PageDown: this.at - LEAP,
      PageUp: this.at + LEAP,
      Home: 0,
      End: 100,
    }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.move(target);
  }
}
