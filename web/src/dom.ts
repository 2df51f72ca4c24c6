/** The page's elements, by the names index.html gives them. */
export function $<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

/** One line for people and their screen readers; nothing hides it, not even a small screen. */
export function say(text: string): void {
  $("message").textContent = text;
  if (text) $("message").scrollIntoView({ block: "nearest" });
}

export function pressed(button: HTMLElement, on: boolean): void {
  button.setAttribute("aria-pressed", String(on));
}

/** Change a label only where it differs: screen readers read every change. */
export function label(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
