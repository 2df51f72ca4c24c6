/** What the page says, in the user's language. The worker, which says things too, is told which. */
import { german, germanPage } from "./languages/de";
import { english, type PageWords, type Strings } from "./languages/en";
import { spanish, spanishPage } from "./languages/es";
import { french, frenchPage } from "./languages/fr";
import { japanese, japanesePage } from "./languages/ja";
import { portuguese, portuguesePage } from "./languages/pt";
import { chinese, chinesePage } from "./languages/zh";

// The embedded lens carries English alone, to stay small.
const EMBEDDED = import.meta.env.MODE === "element";
const PLAIN = { strings: english, page: {} };
const LANGUAGES: Record<string, { strings: Strings; page: PageWords }> = EMBEDDED ? { en: PLAIN } : {
  en: PLAIN,
  de: { strings: german, page: germanPage },
  es: { strings: spanish, page: spanishPage },
  fr: { strings: french, page: frenchPage },
  ja: { strings: japanese, page: japanesePage },
  pt: { strings: portuguese, page: portuguesePage },
  zh: { strings: chinese, page: chinesePage },
};

/** `?lang=de`, else the first of the user's languages that there is, else English. */
export const language = chosen();
export const strings = LANGUAGES[language].strings;

function chosen(): string {
  if (EMBEDDED) return "en";
  if (typeof document === "undefined") return self.name in LANGUAGES ? self.name : "en";
  const asked = new URLSearchParams(location.search).get("lang");
  const wanted = [...(asked ? [asked] : []), ...navigator.languages];
  const known = wanted.map((each) => each.toLowerCase().split("-")[0]);
  return known.find((each) => each in LANGUAGES) ?? "en";
}

/** Put index.html's own words into the user's language. */
export function translatePage(): void {
  document.documentElement.lang = language;
  const { page } = LANGUAGES[language];
  const said = (text: string) => page[text.trim().replace(/\s+/g, " ")];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const other = said(node.textContent!);
    // What is around a word, as the space before a value, stays.
    if (other) node.textContent = node.textContent!.replace(node.textContent!.trim(), () => other);
  }
  for (const name of ["aria-label", "title"]) {
    for (const element of document.body.querySelectorAll(`[${name}]`)) {
      const other = said(element.getAttribute(name)!);
      if (other) element.setAttribute(name, other);
    }
  }
}
