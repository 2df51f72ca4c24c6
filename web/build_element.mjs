/**
 * The package `distill-lens`: the custom element and its worker, each one file, with types.
 *
 *     node build_element.mjs [--outDir FOLDER] [--runtime]
 *
 * FOLDER is ../dist/distill-lens; `--runtime`: for the folder that distill.lens builds, with ONNX
 * Runtime beside instead of what npm wants.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "vite";

const here = dirname(fileURLToPath(import.meta.url));
const read = (...names) => readFileSync(join(here, ...names), "utf8");
const options = { outDir: { type: "string" }, runtime: { type: "boolean" } };
const { outDir, runtime } = parseArgs({ options }).values;
const out = resolve(outDir ?? join(here, "..", "dist", "distill-lens"));

const FRAMEWORKS = ["react", "preact", "svelte", "vue"]; // that are told the element's attributes

/** Vite would put the worker into the module: it is named only in what is written. */
const namedWorker = {
  name: "named-worker",
  generateBundle(_options, bundle) {
    for (const chunk of Object.values(bundle)) chunk.code = chunk.code.replaceAll("WORKER_FILE", '"./worker.js"');
  },
};

// A build each: what they share would become one more file that the worker has to import.
for (const [entry, emptyOutDir] of [["index", true], ["worker", false], ["parts", false]]) {
  await build({
    root: here,
    configFile: false,
    publicDir: false,
    logLevel: "warn",
    mode: "element", // what src/strings.ts asks for
    plugins: [namedWorker],
    build: {
      target: "es2022",
      outDir: out,
      emptyOutDir,
      minify: true,
      lib: { entry: join(here, "src", "element", `${entry}.ts`), formats: ["es"], fileName: () => `${entry}.js` },
      rolldownOptions: {
        output: { minify: true }, // a library is else only half minified
        treeshake: { moduleSideEffects: (id) => !/\/languages\//.test(id) }, // English alone is used
      },
    },
  });
}

// What `parts=` needs: with ONNX Runtime's files, or for those who copy them.
const besides = join(out, runtime ? "runtime" : "parts");
mkdirSync(besides);
renameSync(join(out, "parts.js"), join(besides, "parts.js"));
for (const [name, network] of [["people", "selfie_segmentation"], ["faces", "blazeface_short_range"]]) {
  copyFileSync(join(here, "networks", network, `${network}.onnx`), join(besides, `${name}.onnx`));
  copyFileSync(join(here, "networks", "LICENSE"), join(besides, `${name}.LICENSE`));
}
if (runtime) besideThePage();
else pack();

/** The modules of ONNX Runtime that no page of ours has as they are. */
function besideThePage() {
  for (const name of ["ort.wasm.min.mjs", "ort.webgpu.min.mjs"])
    copyFileSync(join(here, "node_modules", "onnxruntime-web", "dist", name), join(out, "runtime", name));
}

/** Types, and what npm wants to know. */
function pack() {
  const types = mkdtempSync(join(tmpdir(), "distill-lens-"));
  const emit = ["--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--outDir", types];
  execFileSync(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "-p", here, ...emit]);
  copyFileSync(join(types, "src", "element", "index.d.ts"), join(out, "index.d.ts"));
  rmSync(types, { recursive: true });
  for (const framework of FRAMEWORKS)
    copyFileSync(join(here, "src", "element", `${framework}.d.ts`), join(out, `${framework}.d.ts`));
  const [, version] = /__version__ = "([^"]+)"/.exec(read("..", "src", "distill", "__init__.py"));
  const ort = JSON.parse(read("package.json")).dependencies["onnxruntime-web"];
  const about = {
    name: "distill-lens",
    version,
    description: "A picture or the camera through a distilled image-to-image network, in the browser: <distill-lens>",
    license: "MIT",
    type: "module",
    exports: {
      ".": { types: "./index.d.ts", default: "./index.js" },
      "./worker.js": "./worker.js",
      ...Object.fromEntries(FRAMEWORKS.map((name) => [`./${name}`, { types: `./${name}.d.ts` }])),
      "./package.json": "./package.json",
    },
    types: "./index.d.ts",
    sideEffects: ["./index.js", "./worker.js"],
    files: ["index.js", "*.d.ts", "worker.js", "parts"],
    peerDependencies: { "onnxruntime-web": `~${ort}` },
    keywords: ["custom-element", "web-component", "onnx", "style-transfer", "camera"],
  };
  writeFileSync(join(out, "package.json"), `${JSON.stringify(about, null, 2)}\n`);
  copyFileSync(join(here, "src", "element", "README.md"), join(out, "README.md"));
  copyFileSync(join(here, "..", "LICENSE"), join(out, "LICENSE"));
}
