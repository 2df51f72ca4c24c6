/** What a worker does: inference, one request at a time, so that the page itself never waits. */
import type { CardFrames } from "./card_frames";
import { fetchFile, type Report } from "./download";
import { Enlarger } from "./enlarger";
import type { FaceFinder } from "./face_finder";
import type { FacePaste } from "./face_paste";
import type { FullPicture } from "./full_picture";
import {
  FOUND_BY, type AdoptRequest, type BackendChoice, type BeginFullRequest, type Finder, type InferRequest, type InferResult,
  type OpenRequest, type Part, type WorkerMessage, type WorkerReplies, type WorkerRequest,
} from "./protocol";
import type { Student } from "./manifest";
import { afterTrial, loadRuntime, withoutGpu, type Builds, type Runtime } from "./runtime";
import type { PartMask } from "./part_mask";
import { examine, examineFree } from "./own_network";
import { strings } from "./strings";
import { StudentSession } from "./student_session";

type Reply = WorkerReplies[keyof WorkerReplies];

const WHOLE_PAGE = import.meta.env.MODE !== "element"; // which leaves out what it never asks for, to stay small

/** What draws frames on the graphics card alone, pictures at their own size, parts of them alone, and faces by themselves. */
export interface Extras {
  CardFrames?: typeof CardFrames;
  FacePaste?: typeof FacePaste;
  FullPicture?: typeof FullPicture;
  PartMask?: typeof PartMask;
  /** Brings that, where it does not lie in the worker. */
  bringParts?(choice: BackendChoice): Promise<{ PartMask: typeof PartMask }>;
}

let builds: (choice: BackendChoice) => Builds;
let extras: Extras = {};
let choice: BackendChoice = { backend: null, threads: null };
let loading: Promise<Runtime> | null = null;
let runtime: Runtime | null = null;
let student: StudentSession | null = null;
let opened: OpenRequest | null = null;
let card: CardFrames | null = null; // draws the student's frames
let cardFails = false;
const enlarger = new Enlarger();
let small: ArrayBuffer | null = null; // bytes of an output that was enlarged, to be written over
let full: FullPicture | null = null; // the picture that is being drawn at its own size
let faces: FacePaste | null = null;
const masks = new Map<Finder, { mask: PartMask; file: string }>();
const networks = new Map<string, Promise<ArrayBuffer>>();
const onCpu = new Map<string, Runtime>(); // where the graphics card has failed for a network
let adopted = 0; // networks of the user's own so far

/** The runtime, loaded once; after a failure the next request tries again. */
function runtimeOnce(): Promise<Runtime> {
  loading ??= loadRuntime(choice, builds(choice), tell).catch((error) => {
    loading = null;
    throw error;
  });
  return loading;
}

function networkOnce({ file, bytes }: { file: string; bytes: number | null }): Promise<ArrayBuffer> {
  const known = networks.get(file);
  if (known) return known;
  const fetched = (report: Report) =>
    fetchFile(file, builds(choice).root, (loaded, total) => report(loaded, total ?? bytes));
  const coming = tell(file, fetched)
    .then((blob) => blob.arrayBuffer())
    .catch((error) => {
      networks.delete(file);
      throw error;
    });
  networks.set(file, coming);
  return coming;
}

/** Tells the page how far a file is. */
async function tell<T>(file: string, get: (report: Report) => Promise<T>): Promise<T> {
  let last = { file, loaded: 0, total: null as number | null };
  const report = (loaded: number, total: number | null) => {
    last = { file, loaded, total };
    post({ progress: { ...last, over: false } });
  };
  report(0, null);
  try {
    return await get(report);
  } finally {
    post({ progress: { ...last, over: true } });
  }
}

async function open(wanted: OpenRequest): Promise<WorkerReplies["open"]> {
  const [ready, network] = await Promise.all([runtimeOnce(), networkOnce(wanted.student)]);
  runtime ??= ready;
  let session = await openAnywhere(wanted, network);
  if (runtime.untried && session.runtime.gpu) session = await fasterOf(session, wanted, network);
  leaveCard();
  await student?.close();
  [student, opened] = [session, wanted];
  return session.runtime.backend;
}

/** A network of the user's own: kept under a name that no file of the page has. */
async function adopt(asked: AdoptRequest): Promise<Student> {
  runtime ??= await runtimeOnce();
  const file = `own:${++adopted}`;
  try {
    const free = asked.anySize ? await examineFree(file, asked, runtime) : null;
    const found = free?.student ?? (await examine(file, asked, runtime));
    networks.set(file, Promise.resolve(free?.bytes ?? asked.bytes));
    return found;
  } finally {
    asked.photo?.close();
  }
}

function openAnywhere(wanted: OpenRequest, network: ArrayBuffer): Promise<StudentSession> {
  const tried = student !== null && opened?.student.file === wanted.student.file ? student : null;
  return anywhere(wanted.student, (runtime) => StudentSession.open(wanted, runtime, network, tried?.runtime === runtime));
}

/** The session on the graphics card, or one on the CPU where that is faster: timed once, with a card's first network. */
async function fasterOf(card: StudentSession, wanted: OpenRequest, network: ArrayBuffer): Promise<StudentSession> {
  const cpu = await StudentSession.open(wanted, { ...runtime!, gpu: false }, network).catch(() => null);
  if (!cpu) return card;
  runtime = await afterTrial(runtime!, { gpu: await card.time(), cpu: await cpu.time() });
  await (runtime.gpu ? cpu : card).close();
  return runtime.gpu ? card : StudentSession.open(wanted, runtime, network, true);
}

/** On the graphics card; a network that fails there runs on the CPU from then on, while others stay. */
async function anywhere<T>({ file }: Student, work: (runtime: Runtime) => Promise<T>): Promise<T> {
  if (runtime!.gpu && !onCpu.has(file)) {
    try {
      return await work(runtime!);
    } catch (error) {
      onCpu.set(file, withoutGpu(runtime!, firstLine(error)));
    }
  }
  return work(onCpu.get(file) ?? runtime!);
}

async function beginFull({ student, frame, mirror, part, apart, behind, stickers, side, middle, clear }: BeginFullRequest): Promise<number> {
  const [ready, network] = await Promise.all([runtimeOnce(), networkOnce(student)]);
  runtime ??= ready;
  await full?.close();
  const crop = { left: 0, top: 0, width: frame.width, height: frame.height };
  const view = { frame, crop, mirror, still: true, steady: 0, apart };
  const fade = (await maskOf(part)?.fadeOf(view, part)) ?? null;
  const people = (behind && (await masks.get("people")?.mask.stencil(view))) ?? null;
  const drawn = apart && (await anywhere(student, async (runtime) => (await pasteOf(student, runtime))?.draw(view, crop, null)));
  const marks = stickers.length ? await faceFinder()?.marks(view) : [];
  const layers = { fade, apart, faces: drawn || [], people, behind, stickers, marks: marks ?? [] };
  const picture = (full = new extras.FullPicture!(student, network, frame, { mirror, side, middle, clear }, layers));
  return anywhere(student, (runtime) => picture.plan(runtime));
}

async function dropFull(): Promise<void> {
  const dropped = full;
  full = null;
  await dropped?.close();
}

async function infer(request: InferRequest): Promise<InferResult> {
  if (!student) throw new Error(strings.network.noStudent);
  try {
    return await draw(request);
  } catch (error) {
    if (!student.runtime.gpu) throw error;
    runtime = withoutGpu(runtime!, firstLine(error)); // a lost device: drivers do that
    leaveCard();
    student = await StudentSession.open(opened!, runtime, await networkOnce(opened!.student));
    for (const [finder, { file }] of masks) await openMask(finder, file, runtime);
    return draw(request);
  }
}

/** A frame of what moves, by the graphics card alone; null where something that is asked of it needs the CPU. */
async function drawOnCard(request: InferRequest): Promise<InferResult | null> {
  const { still, part, apart, behind, marks } = request;
  if (!student!.runtime.gpu || cardFails || still || part !== "everything" || apart || behind || marks) return leaveCard();
  try {
    card ??= (await extras.CardFrames?.open(student!, runtime!)) ?? null;
    return (await card?.draw(request)) ?? null;
  } catch {
    cardFails = true;
    return leaveCard();
  }
}

function leaveCard(): null {
  card?.close();
  if (card) student?.forget();
  return (card = null);
}

async function draw(request: InferRequest): Promise<InferResult> {
  const whole = WHOLE_PAGE && (await drawOnCard(request));
  if (whole) return whole;
  const drawn = await student!.infer(request.shown ? { ...request, spare: small ?? request.spare } : request);
  const cut = (await maskOf(request.part)?.cut(request, drawn)) ?? drawn;
  const start = performance.now();
  const marks = request.marks ? await faceFinder()?.marks(request) : undefined;
  const looked = performance.now() - start;
  cut.times.part += looked;
  cut.times.finish += looked;
  const people = request.behind ? await masks.get("people")?.mask.stencil(request, cut) : undefined;
  const result = { ...(request.shown ? enlarged(request, cut) : cut), people, marks };
  const paste = WHOLE_PAGE && request.apart && (await pasteOf(opened!.student, student!.runtime));
  if (!paste) return faces?.restart(), result;
  const begun = performance.now();
  result.faces = await paste.draw(request, request.shown ?? request.crop, result);
  const took = performance.now() - begun;
  result.times.finish += took;
  result.times.part += took;
  return result;
}

function faceFinder(): FaceFinder | undefined {
  return masks.get("faces")?.mask.source as FaceFinder | undefined;
}

/** What draws faces by themselves; null before the network that finds them has come. */
async function pasteOf(student: Student, runtime: Runtime): Promise<FacePaste | null> {
  const finder = faceFinder();
  if (!finder) return null;
  faces ??= new extras.FacePaste!();
  await faces.open(student, finder, runtime, await networkOnce(student));
  return faces;
}

/** A result at the pixels that it is seen at; of bytes that it does not take, the next one is made. */
function enlarged({ shown, still, spare }: InferRequest, result: InferResult): InferResult {
  const start = performance.now();
  const { pixels, width, height, rim } = result;
  const output = { ...student!.guide(), pixels, size: { width, height }, rim };
  const larger = enlarger.enlarge(output, result, shown!, still, spare);
  small = larger?.pixels ? pixels.buffer : null;
  const took = performance.now() - start;
  result.times.finish += took;
  result.times.part += took;
  return { ...result, ...larger };
}

/** What draws a part alone; none before its network has come. */
function maskOf(part: Part): PartMask | undefined {
  const finder = FOUND_BY[part];
  return finder ? masks.get(finder)?.mask : undefined;
}

async function openMask(finder: Finder, file: string, on: Runtime): Promise<void> {
  const network = await networkOnce({ file, bytes: null });
  masks.set(finder, { mask: await extras.PartMask!.open(finder, on, network), file });
}

/** A network that finds parts: fetched while frames go on, opened once it is its turn. */
async function bringFinder({ finder, file }: Asked<"bringFinder">): Promise<void> {
  const [ready] = await Promise.all([runtimeOnce(), networkOnce({ file, bytes: null })]);
  if (extras.bringParts) extras.PartMask ??= (await extras.bringParts(choice)).PartMask;
  await inTurn(async () => {
    runtime ??= ready;
    if (!masks.has(finder)) await openMask(finder, file, runtime);
  }).catch((error) => {
    networks.delete(file); // it may have come broken: asked for anew the next time
    throw error;
  });
}

function firstLine(error: unknown): string {
  return String(error instanceof Error ? error.message : error).split("\n")[0];
}

function post(message: WorkerMessage, transfer: Transferable[] = []): void {
  self.postMessage(message, { transfer });
}

type Asked<W> = Extract<WorkerRequest, { what: W }>;
type Answers = { [W in keyof WorkerReplies]: (request: Asked<W>) => WorkerReplies[W] | Promise<WorkerReplies[W]> };

const FULL: Pick<Answers, "beginFull" | "stepFull" | "finishFull" | "dropFull"> = {
  beginFull,
  stepFull: () => anywhere(full!.student, (runtime) => full!.step(runtime)),
  finishFull: ({ look, kind }) => full!.finish(look, kind),
  dropFull,
};

const ANSWERS = {
  async prepare(request) {
    choice = request.choice;
    await runtimeOnce();
  },
  async fetch({ student }) {
    await Promise.all([runtimeOnce(), networkOnce(student)]);
  },
  adopt,
  forget: ({ file }) => void networks.delete(file),
  bringFinder,
  open,
  ...(WHOLE_PAGE && FULL),
  last: () => card?.last() ?? student?.last() ?? null,
  files: () => performance.getEntriesByType("resource").map(({ name }) => name),
  infer,
} as Answers;

async function reply(id: number, request: WorkerRequest): Promise<void> {
  try {
    const reply = await (ANSWERS[request.what] as (request: WorkerRequest) => Promise<Reply>)(request);
    post({ id, reply }, request.what === "infer" ? handedOver(reply as InferResult) : []);
  } catch (error) {
    post({ id, error: firstLine(error) });
  }
}

function handedOver({ frame, pixels, picture, people, faces }: InferResult): Transferable[] {
  const pictures = [picture, people, ...(faces ?? []).map((face) => face.picture)];
  return [frame, pixels.buffer, ...pictures.filter((each) => each != null)];
}

const AT_ONCE = ["prepare", "fetch", "bringFinder"]; // what is on its way keeps no frame waiting
let queue: Promise<unknown> = Promise.resolve();

function inTurn(work: () => Promise<void>): Promise<void> {
  const done = queue.then(work);
  queue = done.catch(() => {});
  return done;
}

/**
 * Answer the page from now on, with the ONNX Runtime that `find` names once it is wanted. What is
 * not asked for is left out, to stay small.
 */
export function serve(find: (choice: BackendChoice) => Builds, more: Extras = {}): void {
  [builds, extras] = [find, more];
  self.onmessage = ({ data }: MessageEvent<{ id: number; request: WorkerRequest }>) => {
    const answered = () => reply(data.id, data.request);
    if (AT_ONCE.includes(data.request.what)) void answered();
    else void inTurn(answered);
  };
}
