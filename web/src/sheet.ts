/** On a phone the picture fills the screen, styles and a few buttons lie below it, and all else is in a sheet that slides up. */
import { $ } from "./dom";

const PHONE = matchMedia("(max-width: 34rem), (max-height: 30rem)");
// The bar's five places: in each the first that there is.
const BAR = [["more"], ["record", "open"], ["save"], ["flip", "freeze", "compare"], ["camera"]];
const FAR = 60; // pixels that the sheet is pulled down by to close it
const TAP = 8; // pixels that a finger which presses may move

export const onPhone = () => PHONE.matches;

export class Sheet {
  private readonly dialog = $<HTMLDialogElement>("sheet");
  private readonly settings = document.querySelector("aside")!;
  private readonly dock = $("more").parentElement!;
  private readonly buttons = [...this.dock.children];
  private on = false;

  /** `changed`: the layout is another, or the screen; the shape that the camera is to fill, or null. */
  constructor(private readonly changed: (shape: number | null) => void) {
    const { dialog } = this;
    $("more").addEventListener("click", () => {
      dialog.showModal();
      this.place();
    });
    dialog.addEventListener("close", () => this.place());
    $("tools").addEventListener("click", () => dialog.close()); // what they did is to be seen
    this.follow($("close"));
    PHONE.addEventListener("change", () => this.arrange(!$("photo-view").hidden));
    addEventListener("resize", () => this.changed(this.on ? innerWidth / innerHeight : null));
    const watch = new MutationObserver(() => this.place());
    for (const id of BAR.flat()) watch.observe($(id), { attributeFilter: ["hidden"] });
  }

  /** For the photo view, or for the other, which has no sheet. */
  arrange(photo: boolean): void {
    const { dialog, dock, buttons, settings } = this;
    const on = (this.on = PHONE.matches && photo);
    document.body.classList.toggle("phone", on);
    dialog.close();
    $("more").hidden = !on;
    if (!on) dock.append(...buttons);
    (on ? dialog : $("photo-view").parentElement!).append(settings);
    if (on) dock.before($("styles"));
    else settings.prepend($("styles"));
    this.place();
    this.changed(on ? innerWidth / innerHeight : null);
  }

  /** Five buttons are in the bar, the others in the sheet, and the message stands where it is seen. */
  private place(): void {
    const { on, dialog, dock, buttons, settings } = this;
    const bar: Element[] = BAR.map((ids) => $(ids.find((id) => !$(id).hidden)!));
    if (on) {
      $("tools").append(...buttons.filter((each) => !bar.includes(each)));
      // None is moved that stands right already: it would lose the focus.
      for (const [at, each] of bar.entries()) if (dock.children[at] !== each) dock.insertBefore(each, dock.children[at]);
    }
    if (on && !dialog.open) dock.before($("message"));
    else settings.prepend($("message"));
  }

  /** The sheet goes with the finger that pulls at its handle. */
  private follow(handle: HTMLElement): void {
    const { dialog } = this;
    let [start, pulled] = [0, 0];
    handle.addEventListener("pointerdown", ({ clientY, pointerId }) => {
      [start, pulled] = [clientY, 0];
      handle.setPointerCapture(pointerId);
    });
    handle.addEventListener("pointermove", ({ clientY, pointerId }) => {
      if (handle.hasPointerCapture(pointerId)) dialog.style.translate = `0 ${(pulled = Math.max(0, clientY - start))}px`;
    });
    handle.addEventListener("lostpointercapture", () => {
      dialog.style.translate = "";
      if (pulled > FAR) dialog.close();
    });
    handle.addEventListener("click", ({ detail }) => {
      if (detail === 0 || pulled < TAP) dialog.close(); // by a key, or pressed and not pulled
    });
  }
}
