/**
 * What the user set: as the page's address says (?style=hayao&size=384), else as it was the last
 * time. It is kept in this browser alone, and only once the user has changed something.
 */
import { BACKDROPS, BLENDS, FOUND_BY, STROKES, type FileKind, type Part } from "./protocol";

const KEY = "distill-lens";

const number = (low: number, high: number) => (value: unknown) => {
  const found = typeof value === "string" && value.trim() ? Number(value) : value;
  return typeof found === "number" && found >= low && found <= high ? found : undefined;
};
const flag = (value: unknown) =>
  value === true || value === "1" || value === "true"
    ? true
    : value === false || value === "0" || value === "false"
      ? false
      : undefined;
const text = (value: unknown) => (typeof value === "string" && value ? value : undefined);
const oneOf = <T extends string>(known: readonly T[]) => (value: unknown) => known.find((each) => each === value);

/** All that there is, and what a value from outside means; undefined where it means nothing. */
const READ = {
  style: text, // names of the students chosen for photos and for sketches
  sketch: text,
  size: number(32, 2048), // pixels of the network's side; unset, the machine's speed chooses
  mirror: flag, // whether the camera's picture is; unset, it is for a camera that looks at its user
  strength: number(0, 1), // share of the stylised picture in what is shown; the rest is the photo
  steady: number(0, 0.95), // how much of the camera's last result stays where nothing moves
  draw: oneOf(Object.keys(FOUND_BY) as Part[]), // what of a picture
  apart: flag, // whether faces are drawn by themselves, too, and how they go into the picture
  blend: oneOf(BLENDS),
  wear: text, // what faces wear: names of stickers, parted by commas
  background: oneOf(BACKDROPS), // what stands behind people, and its colour; unset: their own
  colour: (value: unknown) => (/^#[\da-f]{6}$/i.test(String(value)) ? String(value) : undefined),
  compare: flag, // whether the photo is shown beside the stylised picture
  format: oneOf(["jpeg", "png"]), // of saved pictures, and JPEG's quality
  quality: number(0.3, 1),
  beside: flag, // whether the photo is saved beside the stylised picture, as far as the divider
  strokes: oneOf(STROKES), // of a saved picture that is larger than it is drawn
  keep: flag, // whether the last picture is there again the next time
  sound: flag, // whether films are recorded with it
};

const NAMES = Object.keys(READ) as (keyof typeof READ)[];

export type Values = { [K in keyof typeof READ]: NonNullable<ReturnType<(typeof READ)[K]>> };

/** What is so until it is changed; all else depends on machine, camera or screen, or is not there. */
const UNSET = {
  strength: 1,
  steady: 0.8, // docs/results.md has what it takes away, and what it leaves behind
  draw: "everything",
  apart: false,
  blend: "feathered",
  colour: "#f6c453",
  format: "jpeg",
  quality: 0.92,
  beside: false,
  strokes: "shown",
  keep: true,
  sound: true,
} satisfies Partial<Values>;

export class Preferences {
  private kept: Partial<Values> = {};
  private readonly linked: Partial<Values>;

  constructor() {
    this.linked = read(Object.fromEntries(new URLSearchParams(location.search)));
    try {
      this.kept = read(JSON.parse(localStorage.getItem(KEY) ?? "{}"));
    } catch {
      // Damaged, or the browser keeps nothing for this page: as if nothing had been set.
    }
  }

  get<K extends keyof typeof UNSET>(name: K): Values[K];
  get<K extends keyof Values>(name: K): Values[K] | undefined;
  get<K extends keyof Values>(name: K): Values[K] | undefined {
    return this.linked[name] ?? this.kept[name] ?? (UNSET as Partial<Values>)[name];
  }

  /** From now on, here and the next time; undefined: as if it had never been set. */
  set<K extends keyof Values>(name: K, value: Values[K] | undefined): void {
    if (name in this.linked) {
      delete this.linked[name]; // else it would come back when the page is loaded anew
      history.replaceState(null, "", withNames(new URL(location.href), this.linked));
    }
    if (value === undefined || value === (UNSET as Partial<Values>)[name]) delete this.kept[name];
    else this.kept[name] = value;
    this.keep(JSON.stringify(this.kept));
  }

  /** What pictures are saved as: PNG where something is see-through. */
  get file(): FileKind {
    const format = this.get("background") === "clear" ? "png" : this.get("format");
    return { type: `image/${format}`, quality: this.get("quality") };
  }

  /** Nothing is kept any more, and the address asks for nothing. */
  forget(): void {
    for (const values of [this.linked, this.kept]) for (const name of NAMES) delete values[name];
    this.keep(null);
    history.replaceState(null, "", withNames(new URL(location.href), {}));
  }

  /** The page's address with all that is set, and what else is so `now`. */
  link(now: Partial<Values>): string {
    return withNames(new URL(location.href), { ...this.kept, ...this.linked, ...now }).href;
  }

  private keep(content: string | null): void {
    try {
      if (content === null) localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, content);
    } catch {
      // A private window may keep nothing: it is so until the page is left.
    }
  }
}

function read(from: Record<string, unknown>): Partial<Values> {
  const found: Record<string, unknown> = {};
  for (const name of NAMES) {
    const value = READ[name](from?.[name]);
    if (value !== undefined) found[name] = value;
  }
  return found;
}

function withNames(url: URL, values: Partial<Values>): URL {
  for (const name of NAMES) {
    const value = values[name];
    if (value === undefined) url.searchParams.delete(name);
    else url.searchParams.set(name, typeof value === "boolean" ? String(Number(value)) : String(value));
  }
  return url;
}
