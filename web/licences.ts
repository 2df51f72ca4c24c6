/** The licences of all that the page may hold, code and networks, as they ask for: licences.txt. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

interface Locked {
  packages: Record<string, { dev?: boolean }>;
}

/** A Vite plugin that puts the file beside the page. */
export function licences(root: string): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle() {
      const { packages }: Locked = read(join(root, "package-lock.json"));
      const folders = Object.keys(packages).filter((name) => name && !packages[name].dev);
      const networks = readdirSync(join(root, "networks")).map((name) => join(root, "networks", name));
      const all = [...folders.map((folder) => terms(join(root, folder))), ...networks.map(networkTerms)];
      const source = all.join("\n\n");
      this.emitFile({ type: "asset", fileName: "licences.txt", source });
    },
  };
}

function terms(folder: string): string {
  if (!existsSync(folder)) return ""; // for another kind of machine
  const { name, version, license, repository } = read(join(folder, "package.json"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  const text = file ? readFileSync(join(folder, file), "utf8") : "";
  const source = typeof repository === "string" ? repository : repository?.url;
  return `${name} ${version}, ${license}, source: ${source}\n\n${text}`.trim();
}

/** Of a network that is no package: what its README says first, which names its licence. */
function networkTerms(folder: string): string {
  const texts = ["README.md", "LICENSE"].map((name) => readFileSync(join(folder, name), "utf8").trim());
  return texts.join("\n\n");
}

function read(path: string) {
  return JSON.parse(readFileSync(path, "utf8"));
}
