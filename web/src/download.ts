/** Files of the page's own folder, with their progress in bytes. In the page and in the worker. */
import { strings } from "./strings";

/** Bytes that came so far, and that come in all (null: nobody says). */
export type Report = (loaded: number, total: number | null) => void;

const SILENT: Report = () => {};

/** One file, asked for anew. Throws an Error that names it and says why it did not arrive. */
export async function fetchFile(
  name: string,
  base: string | URL = location.href,
  report: Report = SILENT,
): Promise<Blob> {
  const url = new URL(name, base);
  const named = (why: string) => new Error(strings.files.missing(name, why));
  let reply: Response;
  try {
    reply = await fetch(url, { cache: "no-cache" });
  } catch {
    throw named(strings.files.silent); // browsers say no more, each in words of its own
  }
  if (!reply.ok) throw named(strings.files.status(reply.status));
  try {
    return await new Response(counted(reply, report)).blob();
  } catch {
    throw named(strings.files.broken);
  }
}

/**
 * A large file that the build keeps as NAME.gz too: that form is taken as it is and unpacked here,
 * so that a host need not know of it. Where it is not there, or no such thing, the file itself.
 */
export async function fetchPacked(name: string, base: string | URL, report: Report): Promise<Blob> {
  if (!import.meta.env.DEV && "DecompressionStream" in self) {
    const packed = await fetch(new URL(`${name}.gz`, base)).catch(() => null);
    if (packed?.ok) {
      const unpacked = await unpack(packed, report).catch(() => null);
      if (unpacked) return unpacked;
    }
  }
  return fetchFile(name, base, report);
}

async function unpack(reply: Response, report: Report): Promise<Blob> {
  const body = counted(reply, report);
  // Some hosts send .gz files as encoded ones: then the browser has unpacked it already.
  if (reply.headers.has("Content-Encoding")) return new Response(body).blob();
  return new Response(body.pipeThrough(new DecompressionStream("gzip"))).blob();
}

function counted(reply: Response, report: Report): ReadableStream<Uint8Array<ArrayBuffer>> {
  // The length of an encoded reply is not that of what is read here.
  const plain = !reply.headers.has("Content-Encoding");
  const total = plain ? Number(reply.headers.get("Content-Length")) || null : null;
  let loaded = 0;
  report(0, total);
  return reply.body!.pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(chunk, controller) {
        loaded += chunk.length;
        report(loaded, total);
        controller.enqueue(chunk);
      },
    }),
  );
}
