/** Hand a canvas to the user as a PNG file. */
export async function savePng(canvas: HTMLCanvasElement, name: string): Promise<void> {
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (!blob) throw new Error("the browser could not make a PNG file of it");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `distill-${name}-${stamp()}.png`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** The local time: 20261122-014207. */
function stamp(): string {
  const now = new Date();
  const local = new Date(now.getTime() - 60_000 * now.getTimezoneOffset());
  return local.toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
}
