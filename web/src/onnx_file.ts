/**
 * What an ONNX file says of its network, and the size that it names struck out: as much of its
 * protobuf (onnx.proto) as that takes. Bytes that are no such file make it throw. In the worker.
 */

// Field numbers of onnx.proto's messages.
const MODEL = { graph: 7, metadata: 14 };
const GRAPH = { node: 1, initializer: 5, input: 11, output: 12, valueInfo: 13 };
const NODE = { input: 1, output: 2 };
const TENSOR_NAME = 8;
const VALUE = { name: 1, type: 2 };
const TENSOR_TYPE = 1;
const ELEMENT_TYPE = 1;
const FLOAT = 1;
const SHAPE = 2;
const DIM = 1;
const DIM_VALUE = 1;
const DIM_PARAM = 2;
const SIDES = ["", "", "height", "width"]; // as the page names them when it opens the network

const STATISTICS = "global_statistics"; // in a file's metadata, as the export notes it
const PICTURE = "thumbnail"; // that a graph of any size makes, by this name
export const SUMMARY = "summary";
export const THUMBNAIL = 256; // pixels a side of the picture that a summary is made of

type Bytes = Uint8Array<ArrayBuffer>;

/** A student that is told the whole picture, taken apart where it is. */
export interface Parts {
  /** From a picture's thumbnail, (1, 3, 256, 256) by the name `thumbnail`, to its `summary`. */
  teller: ArrayBuffer;
  thumbnail: string;
  /** From the picture, it or a part of it, and `summary` (1, 64 or more, 1, 1) to the output. */
  drawn: ArrayBuffer;
}

interface Field {
  number: number;
  /** Of a message, text or bytes; else null. */
  content: Bytes | null;
  value: number;
  /** All of it, as it stands in the file. */
  whole: Bytes;
}

/** The first input and the outputs take any height and width; its operators stay as they are. */
export function freeSize(file: ArrayBuffer): ArrayBuffer {
  return change(new Uint8Array(file), (field) => {
    if (field.number !== MODEL.graph) return field.whole;
    const input = pictureInput(field.content!);
    return wrapped(MODEL.graph, change(field.content!, (part) => {
      const { number, content, whole } = part;
      if (number === GRAPH.valueInfo) return null; // shapes inside, which no longer hold
      const free = number === GRAPH.output || (number === GRAPH.input && name(content!) === input);
      return free ? wrapped(number, freeValue(content!)) : whole;
    }));
  }).buffer;
}

/**
 * What distill.core.onnx_files' `split_at_summary` gives, of a file for any size; null for any other
 * network. Here the thumbnail is the first part's input: WebGPU has no Resize with antialiasing.
 */
export function splitAtSummary(file: ArrayBuffer): Parts | null {
  if (noted(file, STATISTICS) === null) return null;
  const graph = inside(new Uint8Array(file), MODEL.graph);
  const photo = pictureInput(graph);
  const nodes = [...fields(graph)].filter(({ number }) => number === GRAPH.node).map(readNode);
  const summarising = leading(nodes, [], [SUMMARY]).nodes;
  if (!photo || !summarising.length) return null;
  const thumbnail = summarising.some(({ outputs }) => outputs.includes(PICTURE)) ? PICTURE : photo;
  const outputs = [...fields(graph)].filter(({ number }) => number === GRAPH.output);
  const cut = (given: Bytes[], made: Bytes[]) => {
    const inputs = given.map(name);
    const { nodes: needed, values } = leading(nodes, inputs, made.map(name));
    const places = new Set(needed.map(({ place }) => place));
    const part = change(graph, ({ number, content, whole }) => {
      if (number === GRAPH.output || number === GRAPH.valueInfo) return null;
      if (number === GRAPH.node) return places.has(whole.byteOffset) ? whole : null;
      if (number === GRAPH.initializer) return values.has(text(inside(content!, TENSOR_NAME))) ? whole : null;
      if (number !== GRAPH.input) return whole;
      const own = name(content!);
      return values.has(own) && !inputs.includes(own) ? whole : null; // a weight
    });
    const ends = [...given.map((each) => wrapped(GRAPH.input, each)), ...made.map((each) => wrapped(GRAPH.output, each))];
    const whole = joined([part, ...ends]);
    return change(new Uint8Array(file), (field) =>
      field.number === MODEL.graph ? wrapped(MODEL.graph, whole) : field.whole,
    ).buffer;
  };
  const summary = floats(SUMMARY, [1, "numbers", 1, 1]);
  const any = floats(photo, [1, 3, SIDES[2], SIDES[3]]);
  return {
    teller: cut([floats(thumbnail, [1, 3, THUMBNAIL, THUMBNAIL])], [summary]),
    thumbnail,
    drawn: cut([any, summary], outputs.map(({ content }) => content!)),
  };
}

/** Pixels of the longer side that a file names for its picture; null where it leaves that open. */
export function namedSide(file: ArrayBuffer): number | null {
  const graph = inside(new Uint8Array(file), MODEL.graph);
  const wanted = pictureInput(graph);
  for (const { number, content } of fields(graph)) {
    if (number !== GRAPH.input || name(content!) !== wanted) continue;
    const shape = inside(inside(inside(content!, VALUE.type), TENSOR_TYPE), SHAPE);
    const dims = [...fields(shape)].filter((field) => field.number === DIM);
    const sides = dims.slice(2).map((dim) => {
      const found = [...fields(dim.content!)].find((field) => field.number === DIM_VALUE);
      return found?.value ?? 0;
    });
    return Math.max(0, ...sides) || null;
  }
  return null;
}

/** What a file's metadata says of that, null without it. */
export function noted(file: ArrayBuffer, key: string): string | null {
  for (const { number, content } of fields(new Uint8Array(file))) {
    if (number !== MODEL.metadata) continue;
    const [found, value] = [1, 2].map((part) => text(inside(content!, part)));
    if (found === key) return value;
  }
  return null;
}

interface Node {
  inputs: string[];
  outputs: string[];
  /** Where it stands in the file. */
  place: number;
}

function readNode({ content, whole }: Field): Node {
  const parts = [...fields(content!)];
  const texts = (wanted: number) => parts.filter(({ number }) => number === wanted).map((part) => text(part.content!));
  const [inputs, outputs] = [NODE.input, NODE.output].map(texts);
  return { inputs, outputs, place: whole.byteOffset };
}

/** What leads to some values, from the given ones on: its nodes, and all values that they take. */
function leading(nodes: Node[], given: string[], wanted: string[]): { nodes: Node[]; values: Set<string> } {
  const values = new Set(wanted);
  const needed = new Set<Node>();
  for (const each of values) { // grows meanwhile
    const node = given.includes(each) ? undefined : nodes.find(({ outputs }) => outputs.includes(each));
    if (!node) continue;
    needed.add(node);
    for (const input of node.inputs) if (input) values.add(input);
  }
  return { nodes: [...needed], values };
}

/** An input or output of float32 numbers; a side that may be any has a name. */
function floats(own: string, sides: (number | string)[]): Bytes {
  const encode = (content: string) => new TextEncoder().encode(content);
  const dims = sides.map((side) =>
    wrapped(DIM, typeof side === "string" ? wrapped(DIM_PARAM, encode(side)) : number(DIM_VALUE, side)),
  );
  const tensor = joined([number(ELEMENT_TYPE, FLOAT), wrapped(SHAPE, joined(dims))]);
  return joined([wrapped(VALUE.name, encode(own)), wrapped(VALUE.type, wrapped(TENSOR_TYPE, tensor))]);
}

/** Of the inputs the first that is no weight: old files list their weights as inputs too. */
function pictureInput(graph: Bytes): string | undefined {
  const inputs: string[] = [];
  const weights = new Set<string>();
  for (const { number, content } of fields(graph)) {
    if (number === GRAPH.input) inputs.push(name(content!));
    if (number === GRAPH.initializer) weights.add(text(inside(content!, TENSOR_NAME)));
  }
  return inputs.find((each) => !weights.has(each));
}

function freeValue(value: Bytes): Bytes {
  let dims = 0;
  const path = [VALUE.type, TENSOR_TYPE, SHAPE];
  const descend = (message: Bytes, depth: number): Bytes =>
    change(message, ({ number, content, whole }) => {
      if (depth < path.length)
        return number === path[depth] ? wrapped(number, descend(content!, depth + 1)) : whole;
      const side = number === DIM ? SIDES[dims++] : "";
      return side ? wrapped(DIM, wrapped(DIM_PARAM, new TextEncoder().encode(side))) : whole;
    });
  return descend(value, 0);
}

function name(value: Bytes): string {
  return text(inside(value, VALUE.name));
}

function text(bytes: Bytes): string {
  return new TextDecoder().decode(bytes);
}

/** A message's one field of that number; empty without it. */
function inside(message: Bytes, number: number): Bytes {
  for (const field of fields(message)) if (field.number === number && field.content) return field.content;
  return new Uint8Array(0);
}

/** A message of other fields: what `make` gives for each, null for none. */
function change(message: Bytes, make: (field: Field) => Bytes | null): Bytes {
  const parts = [...fields(message)].map(make).filter((part) => part !== null);
  return joined(parts);
}

function wrapped(number: number, content: Bytes): Bytes {
  return joined([varint((number << 3) | 2), varint(content.length), content]);
}

function number(field: number, value: number): Bytes {
  return joined([varint(field << 3), varint(value)]);
}

function joined(parts: Bytes[]): Bytes {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function varint(value: number): Bytes {
  const bytes: number[] = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
  return Uint8Array.of(...bytes, value);
}

function* fields(message: Bytes): Generator<Field> {
  let at = 0;
  const read = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = message[at++];
      if (byte === undefined || scale > 2 ** 63) throw new Error("no protobuf");
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const start = at;
    const tag = read();
    const wire = tag % 8;
    let value = 0;
    let content: Bytes | null = null;
    if (wire === 0) value = read();
    else if (wire === 1) at += 8;
    else if (wire === 5) at += 4;
    else if (wire === 2) {
      const length = read();
      content = message.subarray(at, (at += length));
    } else throw new Error("no protobuf");
    if (at > message.length) throw new Error("no protobuf");
    yield { number: Math.floor(tag / 8), content, value, whole: message.subarray(start, at) };
  }
}
