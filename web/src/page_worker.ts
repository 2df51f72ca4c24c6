/** The page's own worker; its name tells it the language. */
import { language } from "./strings";

export function pageWorker(): Worker {
  return new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: language });
}
