/** The divider between photo and stylised picture: dragged, or moved with the arrow keys. */
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

  /** A mouse may press anywhere on the picture; a finger there scrolls, so it takes the handle. */
  private grab(event: PointerEvent): void {
    const onHandle = this.handle.contains(event.target as Node);
    if (event.button !== 0 || (event.pointerType !== "mouse" && !onHandle)) return;
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
