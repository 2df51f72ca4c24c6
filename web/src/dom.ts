/** Where elements are looked for: the page, or an embedded lens's own tree. */
export type Root = Document | ShadowRoot;

/** The page's elements, by the names index.html gives them. */
export function $<T extends HTMLElement = HTMLElement>(id: string, root: Root = document): T {
  return root.getElementById(id) as T;
}

/** Who says a line, and takes it back. */
export interface Lines {
  say(text: string): void;
  unsay(text: string): void;
}

/** One line for people and their screen readers; nothing hides it, not even a small screen. */
export function say(text: string): void {
  $("message").textContent = text;
  if (text) $("message").scrollIntoView({ block: "nearest" });
}

/** Take a line back, unless another one has come since. */
export function unsay(text: string): void {
  if (text && $("message").textContent === text) say("");
}

export function pressed(button: HTMLElement, on: boolean): void {
  button.setAttribute("aria-pressed", String(on));
}

/** A button's word: another than its own, or null: that of index.html. */
export function caption(button: HTMLElement, word: string | null): void {
  const span = button.querySelector("span")!;
  span.dataset.own ??= span.textContent!;
  label(span, word ?? span.dataset.own);
}

/** Change a label only where it differs: screen readers read every change. */
export function label(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
