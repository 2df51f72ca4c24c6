/** All that the page's code says; what stands still has its English words in index.html. */

const PICTURES = "Pictures work without it.";

// The embedded lens has none of what only the page says, to stay small.
const EMBEDDED = import.meta.env.MODE === "element";

export const english = {
  camera: {
    insecure: `Browsers give the camera to https pages and to localhost only. Start distill.lens with https=true. ${PICTURES}`,
    refused: `The camera was refused. Allow it in the browser's settings for this page, then press Camera again. ${PICTURES}`,
    none: `No camera was found. ${PICTURES}`,
    busy: `The camera cannot be read: perhaps another program uses it. ${PICTURES}`,
    other: (name: string) => `The camera did not start (${name}). ${PICTURES}`,
    lost: `The camera was disconnected. ${PICTURES}`,
    stalled: "The camera gives no pictures at the moment. The page tries again by itself.",
    stop: "Stop",
  },
  files: {
    example: "the example",
    unnamed: "The file",
    noPicture: (name: string) => `${name}: no picture this browser can read. Try a JPEG, PNG or WebP file.`,
    noVideo: (name: string) => `${name}: no video this browser can play. Try an MP4 or WebM file.`,
    missing: (name: string, why: string) => `${name} did not arrive: ${why}`,
    silent: "the server does not answer",
    broken: "the connection broke off",
    status: (status: number) => `the server answers ${status}`,
    noFile: "the browser could not make a file of it",
    incomplete: (why: string) => `The page's own files are not complete: ${why}`,
  },
  styles: {} as Record<string, string>,
  licences: {} as Record<string, string>, // parts of a line of distill.core.terms
  network: {
    noWorker: "a part of the page did not load; reload it",
    cannotRun: (name: string, side: number, why: string) => `${name} cannot run at ${side}: ${why}.`,
    again: "The page tries again by itself.",
    noStudent: "no student is open",
    notFinite: "its output is not finite",
    nonCommercial: "non-commercial",
    terms: (name: string, licence: string) => `Terms of ${name}: ${licence}.`,
  },
  part: EMBEDDED ? ({} as never) : {
    missing: {
      people: (why: string) => `People cannot be told from the background: ${why}. Everything is drawn.`,
      faces: (why: string) => `Faces cannot be told from the rest: ${why}. Everything is drawn.`,
    },
    noFace: "No face was found in this picture.",
    noPerson: "Nobody was found in this picture: its background stays as it is.",
    slow: "This device is too slow to draw faces by themselves while they move. Freeze and opened pictures have them.",
  },
  wear: EMBEDDED ? ({} as never) : {
    refused: (name: string, why: string) => `${name} cannot be worn: ${why}.`,
    opaque: "it has no transparency. Take a PNG that has some, or open a network that draws sketches with it (RGBA)",
    sketch: "your sketch",
    anchors: 'want {"anchors": {"left_eye": [x, y], …}}, two marks or more in two places',
  },
  own: {
    trying: (name: string) => `${name} is tried on photographs …`,
    refused: (name: string, why: string) => `${name} cannot be a style: ${why}.`,
    takes: (name: string) => `How ${name} takes pictures`,
    found: "Found by photographs; change it where the picture looks wrong.",
    fixed: (wide: number, high: number) => `It draws ${wide} × ${high} pixels and no more.`,
    doubtful: (name: string) => `Photographs do not tell which values ${name} takes and gives. Say it under Settings, then press Draw with this.`,
    unreadable: "no ONNX network, or one that ONNX Runtime for browsers cannot run",
    inputs: (count: number) => `it has ${count} inputs, want one: the picture`,
    otherInput: (type: string, shape: string) => `its input is ${type} ${shape}, want float32 1 × 3 × height × width`,
    otherOutput: (type: string, shape: string) => `its output is ${type} ${shape}, want float32 and as large as the picture, 1, 3 or 4 channels`,
    range: (low: number, high: number) => `it gives values from ${low.toPrecision(3)} to ${high.toPrecision(3)}, want RGB in [0, 1] in and out`,
  },
  backend: {
    wasm: (threads: number) => `WASM, ${threads} ${threads === 1 ? "thread" : "threads"}`,
    reason: (where: string, why: string) => `${where}: ${why}.`,
    asked: "as the address asks for",
    emulated: "as the address asks for; emulated on the CPU",
    card: "on the graphics card",
    faster: (gpu: string, cpu: string) => `on the graphics card, faster here: ${gpu} ms a picture, the CPU ${cpu}`,
    slower: (gpu: string, cpu: string) => `faster here than WebGPU: ${cpu} ms a picture against ${gpu}`,
    failed: (why: string) => `WebGPU failed (${why})`,
    needsHttps: "WebGPU needs a page opened over https",
    noWebGpu: "this browser has no WebGPU",
    noCard: "no graphics card for WebGPU",
    onlyEmulated: "WebGPU is only emulated here",
    oneThreadHttps: "no more threads, since the page was not opened over https",
    oneThreadHeaders: "no more threads, since this host sends no COOP/COEP headers",
  },
  film: EMBEDDED ? ({} as never) : {
    opaque: "This browser writes no film with transparency: it is saved on black. Loop saves a GIF that has it.",
    stop: (time: string) => `Stop ${time}`,
    silent: "The film has no sound: the microphone was refused, or there is none.",
    notStarted: (why: string) => `The film did not start: ${why}`,
    failed: "the browser could not go on with the film",
  },
  video: EMBEDDED ? ({} as never) : {
    cancel: "Cancel",
    progress: (percent: number, left: string) => `${percent} % · ${left} left`,
    done: (frames: number, silent: boolean) =>
      `The film is saved: ${frames} ${frames === 1 ? "frame" : "frames"}${silent ? ", without sound: this browser cannot take it over" : ""}.`,
    failed: (why: string) => `The film was not drawn: ${why}.`,
    unreadable: "this browser cannot read the video frame by frame",
    unwritable: "this browser cannot write films",
  },
  full: EMBEDDED ? ({} as never) : {
    cancel: "Cancel: the picture is not saved",
    gives: (width: number, height: number) => `Save gives ${width} × ${height} pixels.`,
    givesFixed: (name: string, wide: number, high: number, width: number, height: number) =>
      `Save gives ${width} × ${height} pixels: ${name} draws ${wide} × ${high} and no more, which are enlarged along the photo.`,
    limited: (width: number, height: number) => `This browser draws no more; the picture has ${width} × ${height}.`,
    clear: "As PNG, so that what is see-through stays so.",
    done: (width: number, height: number) => `The picture is saved at ${width} × ${height}.`,
    failed: (why: string) => `The picture was not saved: ${why}.`,
  },
  offline: EMBEDDED ? ({} as never) : {
    coming: "This page is being kept in the browser, to open without a network.",
    ready: "Offline: this page is kept in the browser and opens without a network.",
    insecure: "Not offline: browsers keep pages opened over https or from localhost only.",
    untrusted: "Not offline: browsers keep no page whose certificate they do not trust, as one made by distill.lens https=true. A static build on an https host is kept.",
    refused: "Not offline: this browser keeps no pages here, as in a private window.",
  },
  loop: EMBEDDED ? ({} as never) : {
    done: "The loop is saved as a GIF file.",
    failed: "the browser could not make a GIF file of it",
  },
  copied: "The picture is in the clipboard.",
  linkCopied: "A link to this page with these settings is in the clipboard.",
  updated: "This page is a new version of the one you had.",
  forgotten: "The settings are forgotten.",
  pen: { down: "Pen down.", up: "Pen up." },
  divider: (percent: number) => `${percent} % photo`,
  automatic: (count: number) => `Automatic (${count} px)`,
  speed: (fps: string, ms: string) => `${fps} FPS · ${ms}`,
  asking: "loading …",
  loading: (loaded: string, total: string | null) => (total === null ? `${loaded} MB` : `${loaded} of ${total} MB`),
} as const;

type Widened<T> = T extends string
  ? string
  : T extends (...given: infer G) => string
    ? (...given: G) => string
    : { [K in keyof T]: Widened<T[K]> };

/** Every language says all of it. */
export type Strings = Widened<typeof english>;

/** The English words that stand in index.html, and those for them. */
export type PageWords = Record<string, string>;
