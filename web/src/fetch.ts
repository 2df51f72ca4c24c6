/** One of the page's own files, asked for anew. Throws an Error that names it and says why. */
export async function fetchFile(name: string, base: string | URL = location.href): Promise<Blob> {
  let reason = "the server does not answer";
  try {
    const reply = await fetch(new URL(name, base), { cache: "no-cache" });
    if (reply.ok) return await reply.blob();
    reason = `the server answers ${reply.status}`;
  } catch {
    // Browsers say no more than "failed to fetch", each in words of its own.
  }
  throw new Error(`${name} did not arrive: ${reason}`);
}
