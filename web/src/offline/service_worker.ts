/**
 * The page's service worker: what was opened once opens without a network, too, and hosts that
 * cannot send headers get the two that WASM threads need.
 */
declare const self: ServiceWorkerGlobalScope;

const CACHE = "distill-lens";
const PATIENCE = 4000; // ms that a network may take, where an earlier answer is at hand
// Files whose names change with what is in them: one that is at hand is the right one.
const NAMED_BY_CONTENT = /^(page|students)\//;
const ISOLATED = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
};

/** What the page says once it draws: the addresses of all that it needs. */
export interface Keep {
  keep: string[];
}

/** What it is told then: whether an earlier version of the page was thrown away. */
export interface Kept {
  updated: boolean;
}

self.addEventListener("install", () => void self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const ours = request.url.startsWith(self.registration.scope);
  if (request.method !== "GET" || !ours || request.headers.has("Range")) return;
  event.respondWith(answer(request, event).then(isolated));
});

self.addEventListener("message", (event) => {
  const { keep } = event.data as Keep;
  const done = keepOnly(keep).then((updated) => event.source?.postMessage({ updated } satisfies Kept));
  event.waitUntil(done);
});

async function answer(request: Request, event: FetchEvent): Promise<Response> {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(plain(request.url));
  if (kept && NAMED_BY_CONTENT.test(inside(request.url))) return kept;
  const fresh = fetch(request).then(async (response) => {
    if (response.ok) await cache.put(plain(request.url), response.clone());
    return response;
  });
  if (!kept) return fresh;
  event.waitUntil(fresh.catch(() => {})); // a slow answer is there the next time
  const late = new Promise<Response>((done) => setTimeout(() => done(kept), PATIENCE));
  return Promise.race([fresh.then((found) => (found.ok ? found : kept)).catch(() => kept), late]);
}

/** Fetch what is not there yet, remove what an earlier version left; says whether it left any. */
async function keepOnly(keep: string[]): Promise<boolean> {
  const cache = await caches.open(CACHE);
  const wanted = new Set(keep.map(plain));
  const there = new Set((await cache.keys()).map(({ url }) => url));
  await Promise.allSettled([...wanted].filter((url) => !there.has(url)).map((url) => cache.add(url)));
  const old = [...there].filter((url) => !wanted.has(url));
  await Promise.all(old.map((url) => cache.delete(url)));
  return old.some((url) => inside(url).startsWith("page/"));
}

/** An address without what is asked of the page: it is one page, whatever its settings. */
function plain(address: string): string {
  const url = new URL(address);
  return url.origin + url.pathname;
}

/** As the page's folder names it. */
function inside(address: string): string {
  return plain(address).slice(self.registration.scope.length);
}

function isolated(response: Response): Response {
  const { status, statusText, body } = response;
  if (!status || response.headers.has("Cross-Origin-Embedder-Policy")) return response;
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(ISOLATED)) headers.set(name, value);
  return new Response(body, { status, statusText, headers });
}
