/** `<distill-lens src="student.onnx">`: pictures and the camera through a student, on any page. */
import { Stage, type Look } from "./stage";
import { plant } from "./template";
import { besideModule } from "./start_worker";

/** What the element tells: with `addEventListener`, each by its name. None of them bubbles. */
export interface DistillLensEvents {
  /** The network is there and runs. */
  ready: CustomEvent<null>;
  /** A picture or a frame is drawn; `detail`: milliseconds that it took. */
  drawn: CustomEvent<number>;
  /** Something did not go; `detail`: a line for people that says what. */
  error: CustomEvent<string>;
}

/** The attributes, as frameworks take them: `distill-lens/react`, `/preact`, `/svelte` and `/vue` know the element by them. */
export interface DistillLensAttributes {
  src?: string;
  picture?: string;
  runtime?: string;
  size?: number | "auto";
  strength?: number;
  steady?: number;
  compare?: boolean;
  mirror?: boolean;
  camera?: boolean;
  alt?: string;
}

const TEXTS = ["src", "picture", "runtime"] as const;
const LOOKS = ["size", "strength", "steady", "compare", "mirror"] as const;
const OTHERS = ["camera", "alt"] as const;
const PROPERTIES = [...TEXTS, ...LOOKS, ...OTHERS];
const STEADY = 0.8;
const MOST_STEADY = 0.95;

// Where there is no browser (a server that renders pages) the module loads, and defines nothing.
const Base = (globalThis.HTMLElement ?? class {}) as typeof HTMLElement;

export class DistillLens extends Base {
  static readonly observedAttributes: readonly string[] = PROPERTIES;
  private stage: Stage | null = null;
  private kept: Blob | null = null; // a picture from before the element was moved

  /** Address of the network, an ONNX file. */
  get src(): string {
    return this.address("src");
  }
  set src(value: string) {
    this.setAttribute("src", value);
  }

  /** Address of a picture that is drawn at once. */
  get picture(): string {
    return this.address("picture");
  }
  set picture(value: string) {
    this.setAttribute("picture", value);
  }

  /** Address of the folder of ONNX Runtime's files; "": runtime/ beside this module. */
  get runtime(): string {
    return this.address("runtime");
  }
  set runtime(value: string) {
    this.setAttribute("runtime", value);
  }

  /** Whether there is a button for the camera, which nothing else switches on but `start()`. */
  get camera(): boolean {
    return this.hasAttribute("camera");
  }
  set camera(on: boolean) {
    this.toggleAttribute("camera", Boolean(on));
  }

  /** Pixels of the longer side; 0: the network's own; "auto": as many as the machine keeps up with. */
  get size(): number | "auto" {
    const given = this.getAttribute("size")?.trim();
    return given === "auto" ? given : Math.max(0, Math.floor(Number(given)) || 0);
  }
  set size(value: number | "auto") {
    this.setAttribute("size", String(value));
  }

  /** How much of the stylised picture is seen over the photo, 0 to 1. */
  get strength(): number {
    return this.share("strength", 1, 1);
  }
  set strength(value: number) {
    this.setAttribute("strength", String(value));
  }

  /** How much of the camera's last result stays where nothing moves, 0 to 0.95. */
  get steady(): number {
    return this.share("steady", STEADY, MOST_STEADY);
  }
  set steady(value: number) {
    this.setAttribute("steady", String(value));
  }

  /** Whether the photo stands beside the stylised picture, parted by the divider. */
  get compare(): boolean {
    return this.hasAttribute("compare");
  }
  set compare(on: boolean) {
    this.toggleAttribute("compare", Boolean(on));
  }

  /** Whether left and right change sides. */
  get mirror(): boolean {
    return this.hasAttribute("mirror");
  }
  set mirror(on: boolean) {
    this.toggleAttribute("mirror", Boolean(on));
  }

  /** What the picture shows, for those who do not see it. */
  get alt(): string {
    return this.getAttribute("alt") ?? "";
  }
  set alt(value: string) {
    this.setAttribute("alt", value);
  }

  /**
   * Show a picture, given as its file or its address; an .onnx file is another network. Rejects with
   * an Error whose message says why not.
   */
  async open(what: Blob | string | URL): Promise<void> {
    await this.atWork().open(what instanceof Blob ? what : String(what));
  }

  /** Switch the camera on, once the element is seen; the browser asks the user. */
  async start(): Promise<void> {
    await this.atWork().startCamera();
  }

  /** Switch the camera off; the picture from before comes back. */
  stop(): void {
    this.stage?.stopCamera();
  }

  /** The stylised picture, as a PNG file. */
  async save(): Promise<Blob> {
    return this.atWork().save();
  }

  connectedCallback(): void {
    if (this.stage) return; // moved
    for (const name of PROPERTIES) this.adoptProperty(name);
    this.begin();
  }

  disconnectedCallback(): void {
    // An element that is moved is back at once.
    queueMicrotask(() => !this.isConnected && this.end());
  }

  attributeChangedCallback(name: string, before: string | null, now: string | null): void {
    const { stage } = this;
    if (!stage || before === now) return;
    if (name === "src") void stage.load(this.src);
    else if (name === "picture") this.showPicture();
    else if (name === "camera" || name === "alt") this.dress();
    else if (name === "runtime") {
      this.end();
      this.begin();
    } else stage.apply(this.look());
  }

  private begin(): void {
    const root = this.shadowRoot ?? this.attachShadow({ mode: "open" });
    plant(root);
    this.dress();
    const stage = new Stage(root, this, this.runtime || besideModule(), this.look(), {
      ready: () => this.tell("ready", null),
      drawn: (ms) => this.tell("drawn", ms),
      error: (line) => this.tell("error", line),
    });
    this.stage = stage;
    void stage.load(this.src);
    if (this.kept) void stage.open(this.kept).catch(() => {});
    else this.showPicture();
  }

  private end(): void {
    this.kept = this.stage?.picture ?? null;
    this.stage?.dispose();
    this.stage = null;
  }

  private atWork(): Stage {
    if (!this.stage) throw new Error("the element is in no document");
    return this.stage;
  }

  private showPicture(): void {
    // An event tells what goes wrong.
    if (this.picture) this.stage!.open(this.picture).catch(() => {});
  }

  private dress(): void {
    const root = this.shadowRoot!;
    root.getElementById("camera")!.hidden = !this.camera;
    root.getElementById("stylised")!.setAttribute("aria-label", this.alt || "The stylised picture");
  }

  private look(): Look {
    const { size, strength, steady, compare, mirror } = this;
    return { size, strength, steady, compare, mirror };
  }

  private tell(type: keyof DistillLensEvents, detail: unknown): void {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  private address(name: string): string {
    const given = this.getAttribute(name);
    return given && URL.canParse(given, document.baseURI) ? new URL(given, document.baseURI).href : "";
  }

  private share(name: string, otherwise: number, most: number): number {
    const given = this.getAttribute(name)?.trim();
    const value = given ? Number(given) : NaN;
    return Number.isNaN(value) ? otherwise : Math.min(most, Math.max(0, value));
  }

  /** What was set before the element was known as one. */
  private adoptProperty(name: (typeof PROPERTIES)[number]): void {
    if (!Object.hasOwn(this, name)) return;
    const value: unknown = this[name];
    Reflect.deleteProperty(this, name);
    Reflect.set(this, name, value);
  }
}

export interface DistillLens {
  addEventListener<K extends keyof DistillLensEvents>(
    type: K,
    listener: (this: DistillLens, event: DistillLensEvents[K]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject,
    options?: boolean | AddEventListenerOptions,
  ): void;
}

declare global {
  interface HTMLElementTagNameMap {
    "distill-lens": DistillLens;
  }
}

if (globalThis.customElements && !customElements.get("distill-lens"))
  customElements.define("distill-lens", DistillLens);
