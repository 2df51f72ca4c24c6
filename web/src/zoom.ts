/** The picture enlarged in its frame: by wheel, two fingers, keys or the slider, and moved by a finger, the mouse or the arrow keys. */
import { $, label } from "./dom";
import { percent } from "./numbers";
import type { Box } from "./protocol";

const MOST = 8;
const NOTCH = 1 / 400; // of the logarithm of the scale, a pixel of a wheel
const PINCHED = 1 / 100; // the same of a touchpad's two fingers, which browsers tell as a wheel with Ctrl
const STEP = 1.25; // by a key
const LEAP = 0.1; // of the frame's side, by an arrow key

export class Zoom {
  private scale = 1;
  private x = 0; // of the picture's left and upper edge, in shares of the frame
  private y = 0;
  private readonly viewer = $("viewer");
  private readonly slider = $<HTMLInputElement>("zoom");
  private readonly fingers = new Map<number, PointerEvent>();

  /** `changed` is called with the scale. */
  constructor(private readonly changed: (scale: number) => void) {
    const { viewer, slider, fingers } = this;
    const options = { passive: false };
    viewer.addEventListener("wheel", (event) => this.turn(event), options);
    viewer.addEventListener("pointerdown", (event) => fingers.set(event.pointerId, event));
    addEventListener("pointermove", (event) => this.drag(event));
    for (const name of ["pointerup", "pointercancel"] as const) addEventListener(name, ({ pointerId }) => fingers.delete(pointerId));
    viewer.addEventListener("keydown", (event) => this.press(event));
    slider.addEventListener("input", () => this.to(Number(slider.value) / 100));
    this.place(0, 0, 1);
  }

  /** What is seen, in shares of the picture. */
  get seen(): Box {
    const { scale, x, y } = this;
    return { left: -x / scale, top: -y / scale, width: 1 / scale, height: 1 / scale };
  }

  /** Another scale; what lies at this place of the frame stays there. */
  to(scale: number, across = 0.5, down = 0.5): void {
    const next = Math.min(MOST, Math.max(1, scale));
    const by = next / this.scale;
    this.place(across - (across - this.x) * by, down - (down - this.y) * by, next);
  }

  private place(x: number, y: number, scale = this.scale): void {
    const { viewer, slider } = this;
    const other = scale !== this.scale;
    const inside = (at: number) => Math.min(0, Math.max(1 - scale, at)) || 0;
    [this.x, this.y, this.scale] = [inside(x), inside(y), scale];
    viewer.style.setProperty("--zoom", String(scale));
    viewer.style.setProperty("--x", `${100 * this.x}%`);
    viewer.style.setProperty("--y", `${100 * this.y}%`);
    viewer.classList.toggle("zoomed", scale > 1);
    slider.value = String(Math.round(100 * scale));
    label($("zoom-value"), percent(Number(slider.value)));
    if (other) this.changed(scale);
  }

  private turn(event: WheelEvent): void {
    event.preventDefault();
    const [across, down] = this.at(event);
    this.to(this.scale * Math.exp(-event.deltaY * (event.ctrlKey ? PINCHED : NOTCH)), across, down);
  }

  /** One finger or the mouse moves what is enlarged, but for the divider's handle; two enlarge it. */
  private drag(event: PointerEvent): void {
    const { fingers } = this;
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const [was, is] = [this.at(before), this.at(event)];
    const held = [...fingers.values()].find(({ pointerId }) => pointerId !== event.pointerId);
    const own = (before.target as Element).closest("#divider");
    if (held) {
      this.viewer.classList.remove("held");
      const [other, box] = [this.at(held), this.viewer.getBoundingClientRect()];
      const apart = ([x, y]: number[]) => Math.hypot((x - other[0]) * box.width, (y - other[1]) * box.height);
      const middle = (at: number[], side: number) => (at[side] + other[side]) / 2;
      this.to((this.scale * apart(is)) / Math.max(1, apart(was)), middle(was, 0), middle(was, 1));
      this.place(this.x + middle(is, 0) - middle(was, 0), this.y + middle(is, 1) - middle(was, 1));
    } else if (this.scale > 1 && !own) this.place(this.x + is[0] - was[0], this.y + is[1] - was[1]);
    fingers.set(event.pointerId, event);
  }

  private press(event: KeyboardEvent): void {
    if (event.target !== this.viewer || event.ctrlKey || event.metaKey) return;
    const arrows: Record<string, [number, number]> = { ArrowLeft: [LEAP, 0], ArrowRight: [-LEAP, 0], ArrowUp: [0, LEAP], ArrowDown: [0, -LEAP] };
    const scale = { "+": this.scale * STEP, "=": this.scale * STEP, "-": this.scale / STEP, "0": 1 }[event.key];
    const by = arrows[event.key];
    if (!scale && !by) return;
    event.preventDefault();
    if (scale) this.to(scale);
    else this.place(this.x + by[0], this.y + by[1]);
  }

  /** Where in the frame an event is, in shares of its sides. */
  private at({ clientX, clientY }: MouseEvent): [number, number] {
    const { left, top, width, height } = this.viewer.getBoundingClientRect();
    return [(clientX - left) / width, (clientY - top) / height];
  }
}
