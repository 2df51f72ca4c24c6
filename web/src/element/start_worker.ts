/** The element's worker, which lies beside its module, wherever that came from. */

declare const WORKER_FILE: string; // "./worker.js" once it is built

export interface Started {
  worker: Worker;
  /** To be called once it has ended. */
  release: () => void;
}

export function startWorker(): Started {
  const address = beside("worker.js");
  if (new URL(address).origin === location.origin) {
    // Written so that bundlers see it, and bundle the worker too.
    const worker = new Worker(new URL(WORKER_FILE, import.meta.url), { type: "module" });
    return { worker, release: () => {} };
  }
  // Browsers start no worker from another site's address, but import it from there.
  const script = new Blob([`import ${JSON.stringify(address)};`], { type: "text/javascript" });
  const url = URL.createObjectURL(script);
  return { worker: new Worker(url, { type: "module" }), release: () => URL.revokeObjectURL(url) };
}

/** Where ONNX Runtime's files lie unless the owner names a place. */
export function besideModule(): string {
  return beside("runtime/");
}

function beside(name: string): string {
  return import.meta.url.split(/[?#]/)[0].replace(/[^/]*$/, name);
}
