/** Files that people bring: chosen, dropped on the page, or pasted. */
import { $ } from "./dom";

export function onFile(take: (file: File) => void): void {
  const input = $<HTMLInputElement>("file");
  $("open").addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    const file = input.files?.[0];
    input.value = ""; // the same file may be chosen again
    if (file) take(file);
  });
  document.addEventListener("paste", ({ clipboardData }) => pick(clipboardData, take));
  onDrop(take);
}

export function isNetwork(name: string): boolean {
  return /\.onnx$/i.test(name);
}

export function isVideo(file: Blob): boolean {
  return file.type.startsWith("video/");
}

function onDrop(take: (file: File) => void): void {
  let depth = 0; // enter and leave come for every element on the way
  const show = (change: number) => {
    depth = Math.max(0, depth + change);
    $("drop").hidden = depth === 0;
  };
  const holdsFile = (event: DragEvent) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragenter", (event) => holdsFile(event) && show(1));
  document.addEventListener("dragleave", (event) => holdsFile(event) && show(-1));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    show(-depth);
    pick(event.dataTransfer, take);
  });
}

function pick(data: DataTransfer | null, take: (file: File) => void): void {
  const files = [...(data?.files ?? [])];
  const file = files.find(({ type }) => /^(image|video)\//.test(type)) ?? files[0];
  if (file) take(file);
}
