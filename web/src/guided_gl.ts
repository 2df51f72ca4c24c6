/**
 * guided.ts on a graphics card: one pass fits the functions at the output's size, one makes the photo's luma,
 * one applies them. In the worker.
 */
import { EPS, LEVEL, RADIUS, type Small, type View } from "./guided";
import { LUMA } from "./planes";
import type { Size } from "./protocol";
import { BLOCK, type Shares } from "./steady";

const NOTHING: Shares = { weight: new Float32Array(1), across: 1 };

// Browsers that do not heed `failIfMajorPerformanceCaveat` draw by these, on the CPU.
const EMULATED = /swiftshader|llvmpipe|softpipe|software|basic render/i;
const EVERYWHERE = `#version 300 es
void main() { gl_Position = vec4(4 * (gl_VertexID & 1) - 1, 2 * (gl_VertexID & 2) - 1, 0, 1); }`;
const HEAD = `#version 300 es
precision highp float;
precision highp int;
layout(location = 0) out vec4 slope;
`;
// Beyond the picture its edge goes on.
const COUNT = `${(2 * RADIUS + 1) ** 2}.0`;
const FIT = `${HEAD}layout(location = 1) out vec4 offset;
uniform sampler2D luma, small;
void main() {
  ivec2 last = textureSize(luma, 0) - 1;
  float mean = 0.0, square = 0.0, power = 0.0; vec3 colour = vec3(0), product = vec3(0);
  for (int y = -${RADIUS}; y <= ${RADIUS}; y++) for (int x = -${RADIUS}; x <= ${RADIUS}; x++) {
    ivec2 at = clamp(ivec2(gl_FragCoord.xy) + ivec2(x, y), ivec2(0), last);
    float g = texelFetch(luma, at, 0).r; vec3 c = texelFetch(small, at, 0).rgb;
    mean += g; square += g * g; power += dot(c, c); colour += c; product += g * c;
  }
  mean /= ${COUNT}; colour /= ${COUNT};
  float variance = square / ${COUNT} - mean * mean + ${EPS};
  slope = vec4((product / ${COUNT} - mean * colour) / variance, 0);
  float rest = clamp(1.0 - dot(slope.rgb, slope.rgb) * variance / (power / ${COUNT} - dot(colour, colour) + ${LEVEL}), 0.0, 1.0);
  ivec2 own = ivec2(gl_FragCoord.xy);
  colour = mix(colour, texelFetch(small, own, 0).rgb, rest);
  offset = vec4(colour - slope.rgb * mix(mean, texelFetch(luma, own, 0).r, rest), 0);
}`;
const PLACE = `uniform vec2 size; uniform vec4 inner, crop, blocks;
vec2 to() { return vec2(gl_FragCoord.x, size.y - gl_FragCoord.y) / size; }
`;
// `blocks`: of the network's input with its rim, across and down, as many as it has of whole ones; then how
// many of them the shares have.
const GUIDE = `${HEAD}uniform sampler2D photo, before, shares;
${PLACE}void main() {
  vec4 seen = texture(photo, crop.xy + to() * crop.zw);
  float kept = texture(shares, (inner.xy + to() * inner.zw) * blocks.xy / blocks.zw).r;
  slope.r = mix(dot(seen.rgb + 1.0 - seen.a, vec3(${LUMA})), texelFetch(before, ivec2(gl_FragCoord.xy), 0).r, kept);
}`;
// `inner`: left, top, width and height of what is shown of the output; `crop`: the same of the photo, a
// negative width where it is mirrored; both as shares of their pictures.
const APPLY = `${HEAD}uniform sampler2D slopes, offsets, small, guide;
${PLACE}void main() {
  vec2 at = inner.xy + to() * inner.zw;
  float luma = texelFetch(guide, ivec2(gl_FragCoord.xy), 0).r;
  vec3 colour = clamp(texture(slopes, at).rgb * luma + texture(offsets, at).rgb, 0.0, 1.0);
  float opaque = texture(small, at).a;
  slope = vec4(colour * opaque, opaque);
}`;

export class GuidedGl {
  private readonly canvas = new OffscreenCanvas(1, 1);
  private readonly gl: WebGL2RenderingContext;
  private readonly textures = new Map<string, WebGLTexture>();
  private readonly passes: Record<"fit" | "guide" | "apply", WebGLProgram>;
  private readonly target: WebGLFramebuffer;
  private guides = ["guide", "guide before"]; // each frame the other one

  /** Throws where there is no graphics card, or none that can. */
  constructor() {
    const gl = this.canvas.getContext("webgl2", { failIfMajorPerformanceCaveat: true, antialias: false, depth: false });
    if (!gl?.getExtension("EXT_color_buffer_float")) throw new Error("no WebGL with floats");
    const named = gl.getExtension("WEBGL_debug_renderer_info")?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER;
    if (EMULATED.test(String(gl.getParameter(named)))) throw new Error("WebGL is only emulated");
    this.gl = gl;
    this.passes = { fit: program(gl, FIT), guide: program(gl, GUIDE), apply: program(gl, APPLY) };
    this.target = gl.createFramebuffer();
  }

  /** Null once the card is lost. */
  enlarge({ luma, shares, pixels, size, rim }: Small, { frame, crop, mirror }: View, shown: Size): ImageBitmap | null {
    const { gl, canvas } = this;
    const kept = (canvas.width === shown.width && canvas.height === shown.height && shares) || NOTHING;
    if (canvas.width !== shown.width || canvas.height !== shown.height) Object.assign(canvas, shown);
    const { width, height } = size;
    this.bind("luma", gl.NEAREST, gl.NEAREST); // floats are not always filtered
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.R32F, width, height, 0, gl.RED, gl.FLOAT, luma);
    this.bind("small");
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, width, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(pixels.buffer));
    this.bind("photo", gl.LINEAR_MIPMAP_LINEAR);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, gl.RGBA, gl.UNSIGNED_BYTE, frame);
    gl.generateMipmap(gl.TEXTURE_2D);
    const down = kept.weight.length / kept.across;
    this.bind("shares");
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.R16F, kept.across, down, 0, gl.RED, gl.FLOAT, kept.weight);
    this.run("fit", { luma: "luma", small: "small" }, size, ["slopes", "offsets"]);
    const inner = [rim.width / width, rim.height / height, 1 - (2 * rim.width) / width, 1 - (2 * rim.height) / height];
    const [left, across] = mirror ? [crop.left + crop.width, -crop.width] : [crop.left, crop.width];
    const seen = [left / frame.width, crop.top / frame.height, across / frame.width, crop.height / frame.height];
    const places = { inner, crop: seen, blocks: [width / BLOCK, height / BLOCK, kept.across, down] };
    this.guides.reverse();
    const [guide, before] = this.guides;
    this.run("guide", { photo: "photo", before, shares: "shares" }, shown, [guide], places);
    this.run("apply", { slopes: "slopes", offsets: "offsets", small: "small", guide }, shown, [], places);
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)); // until it is done: what it takes counts
    return gl.isContextLost() || gl.getError() ? null : canvas.transferToImageBitmap();
  }

  /** One pass, from textures by the shader's names into one of luma or two of colours, or onto the canvas. */
  private run(pass: keyof GuidedGl["passes"], from: Record<string, string>, size: Size, to: string[], places: Record<string, number[]> = {}): void {
    const { gl } = this;
    const use = this.passes[pass];
    const { width, height } = size;
    gl.bindFramebuffer(gl.FRAMEBUFFER, to.length ? this.target : null);
    to.forEach((name, i) => {
      const luma = to.length === 1; // whole floats: mixed again and again
      this.bind(name, ...(luma ? [gl.NEAREST, gl.NEAREST] : []));
      if (luma) gl.texImage2D(gl.TEXTURE_2D, 0, gl.R32F, width, height, 0, gl.RED, gl.FLOAT, null);
      else gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA16F, width, height, 0, gl.RGBA, gl.HALF_FLOAT, null);
      gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0 + i, gl.TEXTURE_2D, this.textures.get(name)!, 0);
    });
    if (to.length === 1) gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT1, gl.TEXTURE_2D, null, 0);
    if (to.length) gl.drawBuffers(to.map((_, i) => gl.COLOR_ATTACHMENT0 + i));
    gl.useProgram(use);
    Object.entries(from).forEach(([named, name], unit) => {
      gl.activeTexture(gl.TEXTURE0 + unit);
      gl.bindTexture(gl.TEXTURE_2D, this.textures.get(name) ?? null);
      gl.uniform1i(gl.getUniformLocation(use, named), unit);
    });
    gl.activeTexture(gl.TEXTURE0);
    gl.uniform2f(gl.getUniformLocation(use, "size"), width, height);
    for (const [name, four] of Object.entries(places)) gl.uniform4fv(gl.getUniformLocation(use, name), four);
    gl.viewport(0, 0, width, height);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  }

  /** The texture of that name, made once, to be filled. */
  private bind(name: string, shrunk: number = this.gl.LINEAR, enlarged: number = this.gl.LINEAR): void {
    const { gl, textures } = this;
    if (!textures.has(name)) textures.set(name, gl.createTexture());
    gl.bindTexture(gl.TEXTURE_2D, textures.get(name)!);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, shrunk);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, enlarged);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
  }
}

function program(gl: WebGL2RenderingContext, fragment: string): WebGLProgram {
  const made = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, EVERYWHERE], [gl.FRAGMENT_SHADER, fragment]] as const) {
    const shader = gl.createShader(kind)!;
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made) ?? "no program");
  return made;
}
