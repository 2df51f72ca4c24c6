/** Toolbars by keyboard: one tab stop each; arrow keys, Home and End move inside (ARIA's pattern). */

export function connectToolbars(): void {
  for (const toolbar of document.querySelectorAll<HTMLElement>("[role=toolbar]")) new Toolbar(toolbar);
}

class Toolbar {
  /** What has the focus; still it once that is disabled, since the focus would fall out of the page. */
  private held: HTMLButtonElement | null = null;

  constructor(private readonly toolbar: HTMLElement) {
    toolbar.addEventListener("keydown", (event) => this.press(event));
    toolbar.addEventListener("focusin", (event) => {
      this.held = event.target as HTMLButtonElement;
      this.stopAt(this.held);
    });
    toolbar.addEventListener("focusout", () => {
      if (this.held && this.usable.includes(this.held)) this.held = null;
    });
    // Buttons come and go: the stop must be one that can be reached.
    const watched = { subtree: true, childList: true, attributeFilter: ["disabled", "hidden"] };
    new MutationObserver(() => this.check()).observe(toolbar, watched);
    this.check();
  }

  private get all(): HTMLButtonElement[] {
    return [...this.toolbar.querySelectorAll("button")];
  }

  private get usable(): HTMLButtonElement[] {
    return this.all.filter((button) => !button.disabled && !button.hidden);
  }

  private check(): void {
    const { usable } = this;
    const stop = usable.find((button) => button.tabIndex === 0) ?? usable[0];
    this.stopAt(stop);
    if (this.held && !usable.includes(this.held)) stop?.focus();
  }

  private stopAt(stop: HTMLElement | undefined): void {
    for (const button of this.all) button.tabIndex = button === stop ? 0 : -1;
  }

  private press(event: KeyboardEvent): void {
    const { usable } = this;
    const at = usable.indexOf(document.activeElement as HTMLButtonElement);
    const last = usable.length - 1;
    // Right to left, the next button is on the left.
    const forth = getComputedStyle(event.currentTarget as HTMLElement).direction === "rtl" ? -1 : 1;
    const next: Record<string, number> = {
      ArrowRight: at + forth,
      ArrowLeft: at - forth,
      Home: 0,
      End: last,
    };
    if (at < 0 || !(event.key in next)) return;
    event.preventDefault();
    usable[(next[event.key] + usable.length) % usable.length].focus();
  }
}
