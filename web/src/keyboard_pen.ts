/** Drawing without a pointer: arrow keys move a pen over the paper, Space puts it down and lifts it. */
import { $, label } from "./dom";
import { strings } from "./strings";

const STEP = 0.02; // of the paper's side
const LEAP = 0.1;

export interface Ink {
  /** Places are shares of the paper's side. */
  begin(x: number, y: number): void;
  extend(x: number, y: number): void;
  end(): void;
}

export class KeyboardPen {
  private x = 0.5;
  private y = 0.5;
  private down = false;
  private readonly paper = $("paper");
  private readonly mark = $("pen-mark");

  constructor(private readonly ink: Ink) {
    this.paper.addEventListener("keydown", (event) => this.press(event));
    this.paper.addEventListener("blur", () => this.lift());
    this.show();
  }

  /** Whatever was being drawn is over: undo, or a pointer, took the paper. */
  lift(): void {
    if (!this.down) return;
    this.down = false;
    this.ink.end();
    this.show();
  }

  private press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? LEAP : STEP;
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [-step, 0],
      ArrowRight: [step, 0],
      ArrowUp: [0, -step],
      ArrowDown: [0, step],
    };
    if (event.key in moves) this.move(...moves[event.key]);
    else if (event.key === " " || event.key === "Enter") this.toggle();
    else if (event.key === "Escape") this.lift();
    else return;
    event.preventDefault();
  }

  private move(dx: number, dy: number): void {
    this.x = Math.min(1, Math.max(0, this.x + dx));
    this.y = Math.min(1, Math.max(0, this.y + dy));
    if (this.down) this.ink.extend(this.x, this.y);
    this.show();
  }

  private toggle(): void {
    if (this.down) return this.lift();
    this.down = true;
    this.ink.begin(this.x, this.y);
    this.show();
  }

  private show(): void {
    this.mark.style.setProperty("--x", `${100 * this.x}%`);
    this.mark.style.setProperty("--y", `${100 * this.y}%`);
    this.mark.classList.toggle("down", this.down);
    label($("pen-state"), this.down ? strings.pen.down : strings.pen.up);
  }
}
