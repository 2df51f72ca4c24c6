/** The page without a network: registers the service worker, and tells it what to keep. */
import { $, label, say } from "../dom";
import { loadFilms } from "../film_controls";
import { gifWorker } from "../gif_loop";
import type { Manifest } from "../manifest";
import { finderNetworks, stickerFiles } from "../part_controls";
import portrait from "../portrait.jpg?url";
import { strings } from "../strings";

const TRIED = "distill-lens-isolated"; // in this tab: the page was loaded anew for its headers

/** Where there can be none (http on another host, private windows of some browsers), that is said. */
export async function startOffline(): Promise<void> {
  const { serviceWorker } = navigator;
  if (import.meta.env.DEV) return;
  const tell = (text: string) => label($("offline"), text);
  tell(strings.offline.coming);
  if (!serviceWorker) return tell(self.isSecureContext ? strings.offline.refused : strings.offline.insecure);
  if (!self.crossOriginIsolated) {
    // Its headers hold for a page that it answered: this one, once more.
    serviceWorker.addEventListener("controllerchange", () => {
      if (sessionStorage.getItem(TRIED)) return;
      sessionStorage.setItem(TRIED, "1");
      location.reload();
    });
  }
  serviceWorker.addEventListener("message", ({ data }) => {
    tell(strings.offline.ready);
    if (data.updated) say(strings.updated);
  });
  await serviceWorker.register("./service_worker.js").catch(({ name }: DOMException) => {
    if (serviceWorker.controller) tell(strings.offline.ready); // it is there, the network is not
    // A certificate that the user has accepted is none that the browser trusts.
    else tell(name === "SecurityError" ? strings.offline.untrusted : strings.offline.refused);
  });
}

/** Once the page draws: `loaded` are the files that its worker took. */
export async function keepForOffline(manifest: Manifest, loaded: string[]): Promise<void> {
  const { serviceWorker } = navigator;
  if (!serviceWorker || !(await serviceWorker.getRegistration())) return;
  const { active } = await serviceWorker.ready;
  // What comes only when it is wanted comes now: later there may be no network.
  await Promise.allSettled([loadFilms(), fetch(gifWorker)]);
  const folder = new URL(".", location.href).href;
  const own = [...document.querySelectorAll<HTMLLinkElement>("link[href]")].map(({ href }) => href);
  // The browser does not count what was fetched and not read.
  const named = [manifest.example, manifest.example_tall, "manifest.json", gifWorker, portrait, ...Object.values(finderNetworks), ...Object.values(stickerFiles)];
  for (const { file, thumbnail } of manifest.students)
    if (!file.startsWith("own:")) named.push(file, ...(thumbnail ? [thumbnail] : []));
  const page = performance.getEntriesByType("resource").map(({ name }) => name);
  const files = [...page, ...loaded, ...own, folder, ...named.map((name) => new URL(name, folder).href)];
  const keep = [...new Set(files)].filter((url) => url.startsWith(folder));
  active?.postMessage({ keep });
}
