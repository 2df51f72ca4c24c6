/** Handing what was made to the user: as a file, to another app, to the clipboard. */
import type { FileKind } from "./protocol";
import { strings } from "./strings";

export const PNG: FileKind = { type: "image/png", quality: 1 };

/** A canvas as a file, by default PNG; JPEG has white behind what is see-through. */
export async function encoded(canvas: HTMLCanvasElement, { type, quality }: FileKind = PNG): Promise<Blob> {
  const context = canvas.getContext("2d")!;
  if (type === "image/jpeg") {
    context.globalCompositeOperation = "destination-over";
    context.fillStyle = "white";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.globalCompositeOperation = "source-over";
  }
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, type, quality));
  if (!blob) throw new Error(strings.files.noFile);
  return blob;
}

/** Under a title that says the source and the style. */
export function saveFile(blob: Blob, title: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = fileName(blob, title);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Whether this browser hands pictures to other apps, as phones do. */
export function canShare(): boolean {
  const probe = new File([], "probe.png", { type: "image/png" });
  return navigator.canShare?.({ files: [probe] }) ?? false;
}

/** Nothing happens where the user changes their mind. */
export async function shareFile(blob: Blob, title: string): Promise<void> {
  const file = new File([blob], fileName(blob, title), { type: blob.type });
  try {
    await navigator.share({ files: [file] });
  } catch (error) {
    if ((error as DOMException).name !== "AbortError") throw error;
  }
}

export function canCopy(): boolean {
  return typeof ClipboardItem !== "undefined" && navigator.clipboard?.write !== undefined;
}

/** A promise is taken as it is: some browsers copy only while the click is being handled. */
export async function copyPicture(blob: Promise<Blob>): Promise<void> {
  await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
}

function fileName(blob: Blob, title: string): string {
  const kind = blob.type.split(";")[0].split("/")[1].replace("jpeg", "jpg");
  return `${title}.${kind}`;
}

/** A file's name without its ending. */
export function stem(name: string): string {
  return name.replace(/\.\w+$/, "");
}

/** What has no file's name, by the local time: camera-20261122-014207. */
export function stamped(name: string): string {
  const now = new Date();
  const local = new Date(now.getTime() - 60_000 * now.getTimezoneOffset());
  return `${name}-${local.toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-")}`;
}
