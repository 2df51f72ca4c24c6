/**
 * Frames of what moves by WebGPU alone: from the camera's texture to the network's buffer, from its output to a
 * canvas, with the smoothing of steady.ts and the guided enlargement of guided.ts between them. No pixel is read
 * back; what it takes is waited for. In the worker.
 */
import { EPS, LEVEL, RADIUS } from "./guided";
import type { NetworkSession } from "./network_session";
import { THUMBNAIL } from "./onnx_file";
import { LUMA } from "./planes";
import type { InferRequest, InferResult, LastTensors, Size } from "./protocol";
import type { Runtime } from "./runtime";
import { BLOCK, STILL } from "./steady";
import { LOOK, type StudentSession } from "./student_session";

// Of the specification, which TypeScript has no names for.
const [MAP_READ, COPY_FROM, COPY_TO, UNIFORM, STORAGE] = [1, 4, 8, 64, 128];
const TEXTURE = 2 | 4 | 16; // copied to, seen by a shader, and drawn to, as copies of pictures are

const STEPS = `
struct Frame { crop: vec4f, size: vec2u, rim: vec2u, shown: vec2u, blocks: vec2u, mirror: u32, larger: u32, strength: f32 }
@group(0) @binding(0) var<uniform> f: Frame;
@group(0) @binding(1) var photo: texture_2d<f32>;
@group(0) @binding(2) var linear: sampler;
@group(0) @binding(3) var<storage, read_write> input: array<f32>;
@group(0) @binding(4) var<storage, read_write> output: array<f32>;
@group(0) @binding(5) var<storage, read_write> means: array<vec4f>;
@group(0) @binding(6) var<storage, read_write> reference: array<vec4f>;
@group(0) @binding(7) var<storage, read_write> weight: array<f32>;
@group(0) @binding(8) var<storage, read_write> kept: array<vec4f>; // three colours and the input's luma
@group(0) @binding(9) var<storage, read_write> slopes: array<vec4f>;
@group(0) @binding(10) var<storage, read_write> offsets: array<vec4f>;
@group(0) @binding(11) var<storage, read_write> guide: array<f32>;
@group(0) @binding(12) var<storage, read_write> thumbnail: array<f32>;
const LUMA = vec3f(${LUMA});

// The photo's mean around a place, in shares of what is seen, over a box of that size; white behind what is see-through.
fn seen(middle: vec2f, box: vec2f) -> vec3f {
  let pixels = vec2f(textureDimensions(photo));
  let counts = clamp(ceil(box * f.crop.zw), vec2f(1), vec2f(8));
  var sum = vec4f();
  for (var y = 0.5; y < counts.y; y += 1) {
    for (var x = 0.5; x < counts.x; x += 1) {
      var at = middle + box * (vec2f(x, y) / counts - 0.5);
      if (f.mirror == 1) { at.x = 1 - at.x; }
      sum += textureSampleLevel(photo, linear, (f.crop.xy + at * f.crop.zw) / pixels, 0);
    }
  }
  sum /= counts.x * counts.y;
  return sum.rgb + 1 - sum.a;
}
// The rim mirrors what lies inside of it.
fn inside(at: u32, rim: u32, side: u32) -> f32 {
  let count = i32(side - 2 * rim);
  let place = (i32(at) - i32(rim) + 4 * count) % (2 * count);
  return f32(min(place, 2 * count - 1 - place)) + 0.5;
}
var<workgroup> pixels: array<vec4f, ${BLOCK * BLOCK}>;
@compute @workgroup_size(${BLOCK}, ${BLOCK}) fn take(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) own: u32, @builtin(workgroup_id) block: vec3u) {
  let inner = vec2f(f.size - 2 * f.rim);
  let within = all(id.xy < f.size);
  pixels[own] = vec4f();
  if (within) {
    let colour = seen(vec2f(inside(id.x, f.rim.x, f.size.x), inside(id.y, f.rim.y, f.size.y)) / inner, 1 / inner);
    pixels[own] = vec4f(colour, 1);
    for (var c = 0u; c < 3; c++) { input[(c * f.size.y + id.y) * f.size.x + id.x] = colour[c]; }
  }
  workgroupBarrier();
  if (own == 0) {
    var sum = vec4f();
    for (var i = 0; i < ${BLOCK * BLOCK}; i++) { sum += pixels[i]; }
    means[block.y * f.blocks.x + block.x] = sum / sum.w;
  }
}
// What is inside the rim, as Pillow's bilinear filter makes it smaller or larger.
@compute @workgroup_size(8, 8) fn shrink(@builtin(global_invocation_id) id: vec3u) {
  let inner = vec2f(f.size - 2 * f.rim);
  let scale = inner / ${THUMBNAIL};
  let wide = max(scale, vec2f(1));
  let middle = (vec2f(id.xy) + 0.5) * scale;
  let first = max(vec2f(), floor(middle - wide + 0.5));
  let end = min(inner, floor(middle + wide + 0.5));
  var sum = vec4f();
  for (var y = first.y; y < end.y; y += 1) {
    for (var x = first.x; x < end.x; x += 1) {
      let near = max(vec2f(), 1 - abs(vec2f(x, y) - middle + 0.5) / wide);
      let at = (u32(y) + f.rim.y) * f.size.x + u32(x) + f.rim.x;
      let plane = f.size.x * f.size.y;
      sum += near.x * near.y * vec4f(input[at], input[at + plane], input[at + 2 * plane], 1);
    }
  }
  for (var c = 0u; c < 3; c++) { thumbnail[(c * ${THUMBNAIL} + id.y) * ${THUMBNAIL} + id.x] = sum[c] / sum.w; }
}
@compute @workgroup_size(64) fn weigh(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= f.blocks.x * f.blocks.y) { return; }
  let own = vec2i(i32(id.x % f.blocks.x), i32(id.x / f.blocks.x));
  var most = 0.0;
  for (var y = -1; y <= 1; y++) {
    for (var x = -1; x <= 1; x++) {
      let at = vec2u(clamp(own + vec2i(x, y), vec2i(), vec2i(f.blocks) - 1));
      let change = abs(means[at.y * f.blocks.x + at.x] - reference[at.y * f.blocks.x + at.x]);
      most = max(most, max(change.r, max(change.g, change.b)));
    }
  }
  weight[id.x] = f.strength * exp(-(most / ${STILL}) * (most / ${STILL}));
}
// How much of the frame before stays at a place of the input.
fn stays(at: vec2f) -> f32 {
  let place = clamp(at / ${BLOCK} - 0.5, vec2f(), vec2f(f.blocks - 1));
  let low = vec2u(place);
  let high = min(low + 1, f.blocks - 1);
  let part = fract(place);
  let upper = mix(weight[low.y * f.blocks.x + low.x], weight[low.y * f.blocks.x + high.x], part.x);
  return mix(upper, mix(weight[high.y * f.blocks.x + low.x], weight[high.y * f.blocks.x + high.x], part.x), part.y);
}
@compute @workgroup_size(${BLOCK}, ${BLOCK}) fn steady(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) own: u32, @builtin(workgroup_id) block: vec3u) {
  if (own == 0) {
    let at = block.y * f.blocks.x + block.x;
    reference[at] = mix(means[at], reference[at], weight[at]);
  }
  if (any(id.xy >= f.size)) { return; }
  let at = id.y * f.size.x + id.x;
  let plane = f.size.x * f.size.y;
  let luma = dot(LUMA, vec3f(input[at], input[at + plane], input[at + 2 * plane]));
  kept[at] = mix(vec4f(output[at], output[at + plane], output[at + 2 * plane], luma), kept[at], stays(vec2f(id.xy) + 0.5));
}
@compute @workgroup_size(8, 8) fn fit(@builtin(global_invocation_id) id: vec3u) {
  if (any(id.xy >= f.size)) { return; }
  var mean = 0.0; var square = 0.0; var power = 0.0; var colour = vec3f(); var product = vec3f();
  for (var y = -${RADIUS}; y <= ${RADIUS}; y++) {
    for (var x = -${RADIUS}; x <= ${RADIUS}; x++) {
      let at = vec2u(clamp(vec2i(id.xy) + vec2i(x, y), vec2i(), vec2i(f.size) - 1));
      let value = kept[at.y * f.size.x + at.x];
      let rgb = saturate(value.rgb);
      mean += value.a; square += value.a * value.a; power += dot(rgb, rgb); colour += rgb; product += value.a * rgb;
    }
  }
  let count = ${(2 * RADIUS + 1) ** 2}.0;
  mean /= count; colour /= count;
  let variance = square / count - mean * mean + ${EPS};
  let slope = (product / count - mean * colour) / variance;
  let rest = saturate(1 - dot(slope, slope) * variance / (power / count - dot(colour, colour) + ${LEVEL}));
  let own = id.y * f.size.x + id.x;
  slopes[own] = vec4f(slope, 0);
  offsets[own] = vec4f(mix(colour, saturate(kept[own].rgb), rest) - slope * mix(mean, kept[own].a, rest), 0);
}
@vertex fn cover(@builtin(vertex_index) i: u32) -> @builtin(position) vec4f {
  return vec4f(f32(i & 1) * 4 - 1, f32(i >> 1) * 4 - 1, 0, 1);
}
@fragment fn show(@builtin(position) at: vec4f) -> @location(0) vec4f {
  let shown = vec2f(f.shown);
  let place = vec2f(f.rim) + at.xy / shown * vec2f(f.size - 2 * f.rim);
  let corner = clamp(place - 0.5, vec2f(), vec2f(f.size - 1));
  let low = vec2u(corner);
  let high = min(low + 1, f.size - 1);
  let four = vec4u(low.y * f.size.x + low.x, low.y * f.size.x + high.x, high.y * f.size.x + low.x, high.y * f.size.x + high.x);
  let part = fract(corner);
  if (f.larger == 0) { return vec4f(mix(mix(kept[four.x], kept[four.y], part.x), mix(kept[four.z], kept[four.w], part.x), part.y).rgb, 1); }
  let pixel = u32(at.y) * f.shown.x + u32(at.x);
  let luma = mix(dot(LUMA, seen(at.xy / shown, 1 / shown)), guide[pixel], stays(place));
  guide[pixel] = luma;
  let slope = mix(mix(slopes[four.x], slopes[four.y], part.x), mix(slopes[four.z], slopes[four.w], part.x), part.y);
  let offset = mix(mix(offsets[four.x], offsets[four.y], part.x), mix(offsets[four.z], offsets[four.w], part.x), part.y);
  return vec4f(slope.rgb * luma + offset.rgb, 1);
}`;
// What each of them takes, by the bindings above.
const TAKES = { take: [0, 1, 2, 3, 5], shrink: [0, 3, 12], weigh: [0, 5, 6, 7], steady: [0, 3, 4, 5, 6, 7, 8], fit: [0, 8, 9, 10], show: [0, 1, 2, 7, 8, 9, 10, 11] };
type Step = keyof typeof TAKES;

export class CardFrames {
  private readonly steps = {} as Record<Exclude<Step, "show">, GPUComputePipeline> & { show: GPURenderPipeline };
  private readonly bound = new Map<number, GPUBuffer | GPUTexture | GPUSampler>();
  private readonly canvas = new OffscreenCanvas(1, 1);
  private readonly context = this.canvas.getContext("webgpu") as unknown as GPUCanvasContext;
  private readonly session: NetworkSession;
  private frames = 0;
  private before = ""; // how the frame before was seen: of another one nothing stays

  private constructor(
    private readonly student: StudentSession,
    private readonly device: GPUDevice,
    private readonly runtime: Runtime,
  ) {
    this.session = student.drawing;
    const { width, height } = this.session.size;
    const module = device.createShaderModule({ code: STEPS });
    const format = navigator.gpu.getPreferredCanvasFormat();
    for (const name of Object.keys(TAKES) as Step[]) {
      if (name !== "show") this.steps[name] = device.createComputePipeline({ layout: "auto", compute: { module, entryPoint: name } });
      else this.steps.show = device.createRenderPipeline({ layout: "auto", vertex: { module }, fragment: { module, targets: [{ format }] } });
    }
    this.context.configure({ device, format, alphaMode: "opaque" });
    const [pixels, blocks] = [width * height, Math.ceil(width / BLOCK) * Math.ceil(height / BLOCK)];
    this.bound.set(0, device.createBuffer({ size: 64, usage: UNIFORM | COPY_TO }));
    this.bound.set(2, device.createSampler({ minFilter: "linear", magFilter: "linear" }));
    const floats = { 3: 3 * pixels, 5: 4 * blocks, 6: 4 * blocks, 7: blocks, 8: 4 * pixels, 9: 4 * pixels, 10: 4 * pixels, 12: 3 * THUMBNAIL ** 2 };
    for (const [at, length] of Object.entries(floats)) this.bound.set(Number(at), this.buffer(length));
  }

  /** What draws a student's frames; null where a step of its own needs the CPU. Throws where the card cannot. */
  static async open(student: StudentSession, runtime: Runtime): Promise<CardFrames | null> {
    if (!student.plain) return null;
    const device = (await runtime.ort.env.webgpu.device) as GPUDevice;
    device.pushErrorScope("validation");
    const opened = new CardFrames(student, device, runtime);
    const wrong = await device.popErrorScope();
    if (wrong) throw new Error(wrong.message);
    return opened;
  }

  async draw({ frame, crop, mirror, rim, steady, shown, spare }: InferRequest): Promise<InferResult> {
    const { device, session, canvas, bound } = this;
    const { width, height } = session.size;
    const start = performance.now();
    const drawn = { width: width - 2 * rim.width, height: height - 2 * rim.height };
    const larger = shown !== null && Math.max(shown.width, shown.height) > Math.max(drawn.width, drawn.height);
    const to = larger ? shown : drawn;
    const now = [mirror, to.width, to.height, rim.width, rim.height, crop.width, crop.height].join();
    const fresh = !steady || now !== this.before;
    this.before = now;
    if (canvas.width !== to.width || canvas.height !== to.height) {
      Object.assign(canvas, to);
      this.replace(11, this.buffer(to.width * to.height));
    }
    this.photo(frame);
    const blocks = { width: Math.ceil(width / BLOCK), height: Math.ceil(height / BLOCK) };
    const told = new ArrayBuffer(64);
    new Float32Array(told).set([crop.left, crop.top, crop.width, crop.height]);
    new Uint32Array(told, 16).set([width, height, rim.width, rim.height, to.width, to.height, blocks.width, blocks.height, Number(mirror), Number(larger)]);
    new Float32Array(told, 56).set([fresh ? 0 : steady]);
    device.queue.writeBuffer(bound.get(0) as GPUBuffer, 0, told);
    const looks = this.student.teller && (fresh || this.frames % LOOK === 0);
    this.frames++;
    this.compute([["take", blocks], ...(looks ? [["shrink", { width: THUMBNAIL / 8, height: THUMBNAIL / 8 }] as [Step, Size]] : [])]);
    if (fresh) this.student.teller?.forget();
    if (looks) await this.student.teller!.lookOnCard(bound.get(12) as GPUBuffer, steady);
    const output = await session.runOnCard(bound.get(3) as GPUBuffer);
    bound.set(4, output.gpuBuffer as GPUBuffer);
    const all = { width: Math.ceil(width / 8), height: Math.ceil(height / 8) };
    this.compute([["weigh", { width: Math.ceil((blocks.width * blocks.height) / 64), height: 1 }], ["steady", blocks], ...(larger ? [["fit", all] as [Step, Size]] : [])]);
    const encoder = device.createCommandEncoder();
    const view = this.context.getCurrentTexture().createView();
    const pass = encoder.beginRenderPass({ colorAttachments: [{ view, loadOp: "clear", storeOp: "store" }] });
    this.bind(pass, "show");
    pass.draw(3);
    pass.end();
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
    output.dispose();
    const picture = canvas.transferToImageBitmap();
    const times = { prepare: 0, run: performance.now() - start, finish: 0, part: 0 };
    const pixels = new Uint8ClampedArray(spare ?? new ArrayBuffer(0));
    return { frame, crop, mirror, rim, pixels, width, height, drawn, times, picture, backend: this.runtime.backend };
  }

  /** The network's last input, read back, and what it gives for it. */
  async last(): Promise<LastTensors> {
    const { session, device } = this;
    const from = this.bound.get(3) as GPUBuffer;
    const copy = device.createBuffer({ size: from.size, usage: MAP_READ | COPY_TO });
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(from, 0, copy, 0, from.size);
    device.queue.submit([encoder.finish()]);
    await copy.mapAsync(MAP_READ);
    const input = new Float32Array(copy.getMappedRange()).slice();
    copy.destroy();
    const output = (await (await session.runOnCard(from)).getData(true)) as Float32Array;
    return { ...session.size, channels: 3, input, output };
  }

  close(): void {
    this.bound.delete(4); // the runtime's own
    for (const each of this.bound.values()) if ("destroy" in each) each.destroy();
  }

  private photo(frame: ImageBitmap): void {
    const { width, height } = frame;
    const now = this.bound.get(1) as GPUTexture | undefined;
    if (now?.width !== width || now.height !== height) this.replace(1, this.device.createTexture({ size: [width, height], format: "rgba8unorm", usage: TEXTURE }));
    const texture = this.bound.get(1) as GPUTexture;
    this.device.queue.copyExternalImageToTexture({ source: frame }, { texture, premultipliedAlpha: true }, [width, height]);
  }

  private buffer(floats: number): GPUBuffer {
    return this.device.createBuffer({ size: 4 * floats, usage: STORAGE | COPY_FROM });
  }

  private replace(at: number, by: GPUBuffer | GPUTexture): void {
    const before = this.bound.get(at);
    if (before && "destroy" in before) before.destroy();
    this.bound.set(at, by);
  }

  private compute(steps: [Step, Size][]): void {
    const encoder = this.device.createCommandEncoder();
    for (const [name, { width, height }] of steps) {
      const pass = encoder.beginComputePass();
      this.bind(pass, name);
      pass.dispatchWorkgroups(width, height);
      pass.end();
    }
    this.device.queue.submit([encoder.finish()]);
  }

  private bind(pass: GPUComputePassEncoder | GPURenderPassEncoder, name: Step): void {
    const step = this.steps[name];
    const resource = (at: number) => {
      const each = this.bound.get(at)!;
      return each instanceof GPUBuffer ? { buffer: each } : each instanceof GPUTexture ? each.createView() : each;
    };
    const entries = TAKES[name].map((binding) => ({ binding, resource: resource(binding) }));
    pass.setPipeline(step as never);
    pass.setBindGroup(0, this.device.createBindGroup({ layout: step.getBindGroupLayout(0), entries }));
  }
}
