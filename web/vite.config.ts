import { defaultClientConditions, defineConfig } from "vite";

export default defineConfig({
  base: "./", // the folder works under any address
  // ONNX Runtime's own .mjs and .wasm files stay files, instead of one more copy in our bundle.
  resolve: { conditions: ["onnxruntime-web-use-extern-wasm", ...defaultClientConditions] },
  worker: { format: "es" },
  build: {
    target: "es2022",
    assetsDir: "page",
    assetsInlineLimit: 0, // the page's policy knows no data: addresses
    modulePreload: false,
    chunkSizeWarningLimit: 1000,
  },
});
