import { defaultClientConditions, defineConfig } from "vite";
import { licences } from "./licences.ts";

export default defineConfig({
  base: "./", // the folder works under any address
  // ONNX Runtime's own .mjs and .wasm files stay files, instead of one more copy in our bundle.
  resolve: { conditions: ["onnxruntime-web-use-extern-wasm", ...defaultClientConditions] },
  worker: { format: "es" },
  plugins: [licences(import.meta.dirname)],
  build: {
    target: "es2022",
    assetsDir: "page",
    assetsInlineLimit: 0, // the page's policy knows no data: addresses
    modulePreload: false,
    chunkSizeWarningLimit: 1000,
    rollupOptions: {
      input: { index: "index.html", service_worker: "src/offline/service_worker.ts" },
      output: {
        // A service worker keeps its name and lies beside the page, whose files it answers for.
        entryFileNames: ({ name }) =>
          name === "service_worker" ? "service_worker.js" : "page/[name]-[hash].js",
      },
    },
  },
});
