/**
 * What is drawn: everything or a part alone, faces by themselves, what stands behind people. The networks that
 * find them come once they are wanted.
 */
import faces from "../networks/blazeface_short_range/blazeface_short_range.onnx?url";
import people from "../networks/selfie_segmentation/selfie_segmentation.onnx?url";
import { $, label, reason, say, unsay } from "./dom";
import { fetchFile } from "./download";
import type { Engine } from "./engine";
import type { LiveLoop } from "./live_loop";
import type { Student } from "./manifest";
import { ownSticker } from "./own_drawing";
import type { Preferences } from "./preferences";
import { FOUND_BY, type Backdrop, type Finder, type InferResult, type Part, type Sticker } from "./protocol";
import { strings } from "./strings";
import type { Viewer } from "./viewer";

/** The networks that find parts, as the page's folder names them. */
export const finderNetworks: Record<Finder, string> = { people: named(people), faces: named(faces) };

function named(url: string): string {
  return url.replace(new URL(".", location.href).href, "");
}

const STICKERS = "../../src/distill/stylize/stickers/"; // of distill.stylize
const pictures = import.meta.glob<string>("../../src/distill/stylize/stickers/*.png", { eager: true, import: "default", query: "?url" });
const anchors = import.meta.glob<Sticker["anchors"]>("../../src/distill/stylize/stickers/*.json", { eager: true, import: "anchors" });

/** The stickers' pictures by the stickers' names, as the page's folder names them. */
export const stickerFiles = Object.fromEntries(
  Object.entries(pictures).map(([path, url]) => [path.slice(STICKERS.length, -".png".length), named(url)]),
);

const OWN = "own"; // the name of a drawing of one's own

/** Stickers of these names; others are nothing. */
async function stickersOf(names: string[], own: Sticker | null): Promise<Sticker[]> {
  const known = names.filter((name) => name in stickerFiles || (name === OWN && own));
  return Promise.all(
    known.map(async (name) => (name === OWN ? own! : {
      picture: await createImageBitmap(await fetchFile(stickerFiles[name])),
      anchors: anchors[`${STICKERS}${name}.json`],
    })),
  );
}

const PLAIN = { draw: "everything", apart: "", wear: "", background: "" };
type Control = keyof typeof PLAIN;

export class PartControls {
  /** What the controls say, as far as the networks for it are there. */
  private readonly ready: Record<Control, string> = { ...PLAIN };
  private stickers: Sticker[] = [];
  private own: Sticker | null = null;

  /**
   * `changed`: inferences may take more or less from now on, and what is saved is of another kind; `network`: what
   * draws sketches with transparency, if anything does.
   */
  constructor(
    private readonly engine: Engine,
    private readonly live: LiveLoop,
    private readonly viewer: Viewer,
    private readonly preferences: Preferences,
    private readonly changed: () => void,
    private readonly network: () => Student | undefined,
  ) {
    for (const name of Object.keys(PLAIN) as Control[]) {
      $(name).addEventListener("change", () => void this.take(name, true));
      put(name, String(preferences.get(name) ?? PLAIN[name]));
      void this.take(name, false);
    }
    $("colour").addEventListener("input", () => {
      preferences.set("colour", $<HTMLInputElement>("colour").value);
      this.use();
    });
    $("blend").addEventListener("change", () => {
      preferences.set("blend", $<HTMLInputElement>("blend").checked ? "poisson" : "feathered");
      this.use();
    });
    const input = $<HTMLInputElement>("wear-file");
    $("wear-open").addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      const files = [...input.files!];
      input.value = ""; // the same file may be chosen again
      if (files.length) void this.wear(files);
    });
    live.onDrawn = (result, still) => this.tell(result, still);
  }

  /** A drawing of one's own, in the place of an earlier one. */
  async wear(files: File[]): Promise<void> {
    say("");
    try {
      this.own = await ownSticker(files, this.engine, this.network());
    } catch (error) {
      return say(reason(error));
    }
    const [box, name] = $("wear-own").children;
    label(name as HTMLElement, files.find((file) => !/\.json$/i.test(file.name))!.name);
    $("wear-own").hidden = false;
    (box as HTMLInputElement).checked = true;
    this.ready.wear = "";
    await this.take("wear", true);
  }

  /** As if the page had never been opened. */
  forget(): void {
    for (const name of Object.keys(PLAIN) as Control[]) {
      put(name, PLAIN[name]);
      void this.take(name, false);
    }
  }

  /** What is drawn goes on until the network is there; where it does not come, as if nothing had been picked. */
  private async take(name: Control, picked: boolean): Promise<void> {
    const value = valueOf(name);
    const finder = name === "draw" ? FOUND_BY[value as Part] : value && (name === "background" ? "people" : "faces");
    let { stickers } = this;
    let missing = "";
    if (picked) say("");
    try {
      if (finder) await this.engine.bringFinder(finder, finderNetworks[finder]);
      if (name === "wear") stickers = await stickersOf(value.split(","), this.own);
    } catch (error) {
      missing = name === "wear" ? reason(error) : strings.part.missing[finder as Finder](reason(error));
    }
    if (value !== valueOf(name)) return;
    if (missing) {
      put(name, PLAIN[name]);
      say(missing);
    } else if (picked) {
      const kept = value.split(",").filter((each) => each !== OWN).join(); // no file is
      this.preferences.set(name, (kept === PLAIN[name] ? undefined : kept === "true" || kept) as never);
    }
    const same = this.ready[name] === valueOf(name);
    this.ready[name] = valueOf(name);
    if (name === "wear") this.stickers = valueOf(name) ? stickers : [];
    this.use();
    if (name === "wear" && !same) this.live.again();
  }

  private use(): void {
    const { live, ready, preferences } = this;
    const { part, apart, behind } = live;
    [live.part, live.apart, live.behind] = [ready.draw as Part, ready.apart ? preferences.get("blend") : null, ready.background !== ""];
    $<HTMLInputElement>("blend").checked = preferences.get("blend") === "poisson";
    $("blend-row").hidden = !ready.apart;
    live.marks = this.stickers.length > 0;
    this.viewer.stickers = this.stickers;
    const kind = ready.background as Backdrop["kind"];
    const colour = preferences.get("colour");
    this.viewer.backdrop = kind ? { kind, colour } : null;
    $<HTMLInputElement>("colour").value = colour;
    $("colour-row").hidden = kind !== "colour";
    this.changed();
    if (part !== live.part || apart !== live.apart || behind !== live.behind) live.again();
  }

  /** Of a picture without a face or a person, which else would look as if nothing had happened. */
  private tell({ found, faces, marks, people }: InferResult, still: boolean): void {
    const { noFace, noPerson, slow } = strings.part;
    const none = (this.live.part === "faces" && found === false) || faces?.length === 0 || marks?.length === 0;
    const so = [still && none && noFace, still && people === null && noPerson, faces === null && slow];
    for (const line of [noFace, noPerson, slow])
      if (!so.includes(line)) unsay(line);
      else if (!$("message").textContent) say(line); // what else was said goes before it
  }
}

/** A control's value; a box's is whether it is checked, that of several the checked ones. */
function valueOf(name: Control): string {
  if (name === "wear") return [...$(name).querySelectorAll<HTMLInputElement>(":checked")].map(({ value }) => value).join();
  const control = $<HTMLInputElement>(name);
  return control.type !== "checkbox" ? control.value : control.checked ? "true" : "";
}

function put(name: Control, value: string): void {
  const control = $<HTMLInputElement>(name);
  if (name === "wear") for (const box of control.querySelectorAll("input")) box.checked = value.split(",").includes(box.value);
  else if (control.type === "checkbox") control.checked = value === "true";
  else control.value = value;
}
