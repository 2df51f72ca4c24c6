/** `<distill-lens src="student.onnx">`: pictures and the camera through a student, on any page. */
import { FOUND_BY } from "../protocol";
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

/** The attributes, each a property too; frameworks know the element by them: `distill-lens/react`, `/preact`, `/svelte`, `/vue`. */
export interface DistillLensAttributes {
  /** Address of the network, an ONNX file. */
  src?: string;
  /** Address of a picture that is drawn at once. */
  picture?: string;
  /** Address of the folder of ONNX Runtime's files; "": runtime/ beside this module. */
  runtime?: string;
  /** Pixels of the longer side; 0: the network's own; "auto": as many as the machine keeps up with. */
  size?: number | "auto";
  /** How much of the stylised picture is seen over the photo, 0 to 1. */
  strength?: number;
  /** What of a picture is stylised; the rest stays the photo. */
  parts?: "everything" | "people" | "background" | "faces";
  /** How much of the camera's last result stays where nothing moves, 0 to 0.95. */
  steady?: number;
  /** Whether to show the photo beside the output, with a divider. */
  compare?: boolean;
  /** Whether left and right change sides. */
  mirror?: boolean;
  /** Whether there is a button for the camera, which nothing else switches on but `start()`. */
  camera?: boolean;
  /** What the picture shows, for those who do not see it. */
  alt?: string;
}

/** How a property reads its attribute. */
const READ: Record<string, (given: string | null) => string | number | boolean> = {
  src: address,
  picture: address,
  runtime: address,
  size: (given) => (given?.trim() === "auto" ? "auto" : Math.max(0, Math.floor(Number(given)) || 0)),
  strength: (given) => share(given, 1, 1),
  parts: (given) => (given && given in FOUND_BY ? given : "everything"),
  steady: (given) => share(given, 0.8, 0.95),
  compare: (given) => given !== null,
  mirror: (given) => given !== null,
  camera: (given) => given !== null,
  alt: (given) => given ?? "",
};
const PROPERTIES = Object.keys(READ) as (keyof DistillLensAttributes)[];
const FLAGS = ["compare", "mirror", "camera"];

function address(given: string | null): string {
  return given && URL.canParse(given, document.baseURI) ? new URL(given, document.baseURI).href : "";
}

function share(given: string | null, otherwise: number, most: number): number {
  const value = given?.trim() ? Number(given) : NaN;
  return Number.isNaN(value) ? otherwise : Math.min(most, Math.max(0, value));
}

// Where there is no browser (a server that renders pages) the module loads, and defines nothing.
const Base = (globalThis.HTMLElement ?? class {}) as typeof HTMLElement;

export class DistillLens extends Base {
  static readonly observedAttributes: readonly string[] = PROPERTIES;
  private stage: Stage | null = null;
  private kept: Blob | null = null; // a picture from before the element was moved

  static {
    for (const name of PROPERTIES)
      Object.defineProperty(this.prototype, name, {
        enumerable: true,
        configurable: true,
        get(this: DistillLens) {
          return READ[name](this.getAttribute(name));
        },
        set(this: DistillLens, value: unknown) {
          if (FLAGS.includes(name)) this.toggleAttribute(name, Boolean(value));
          else this.setAttribute(name, String(value));
        },
      });
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
    const { size, strength, parts, steady, compare, mirror } = this;
    return { size, strength, parts, steady, compare, mirror };
  }

  private tell(type: keyof DistillLensEvents, detail: unknown): void {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /** What was set before the element was known as one. */
  private adoptProperty(name: (typeof PROPERTIES)[number]): void {
    if (!Object.hasOwn(this, name)) return;
    const value: unknown = this[name];
    Reflect.deleteProperty(this, name);
    Reflect.set(this, name, value);
  }
}

export interface DistillLens extends Required<DistillLensAttributes> {
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
