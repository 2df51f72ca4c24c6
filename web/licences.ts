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
      const networks = readdirSync(join(root, "networks"), { withFileTypes: true }).filter((each) => each.isDirectory());
      const readmes = networks.map(({ name }) => text(root, "networks", name, "README.md"));
      // Of networks that are no packages each says who made it, and one text is the licence of all.
      const all = [...folders.map((folder) => terms(join(root, folder))), ...readmes, text(root, "networks", "LICENSE")];
      const source = all.join("\n\n");
      this.emitFile({ type: "asset", fileName: "licences.txt", source });
    },
  };
}

function terms(folder: string): string {
  if (!existsSync(folder)) return ""; // for another kind of machine
  const { name, version, license, repository } = read(join(folder, "package.json"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  const source = typeof repository === "string" ? repository : repository?.url;
  return `${name} ${version}, ${license}, source: ${source}\n\n${file ? text(folder, file) : ""}`.trim();
}

function text(...path: string[]): string {
  return readFileSync(join(...path), "utf8").trim();
}

function read(path: string) {
  return JSON.parse(text(path));
}
