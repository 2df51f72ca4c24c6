/** What `python -m distill.lens` wrote beside the page. */
import type { Convention } from "./conventions";
import { fetchFile } from "./download";

export interface Student {
  name: string;
  file: string;
  bytes: number;
  kind: "photo" | "sketch";
  /** Channels of its output: 1 of a grey one, 3, or 4 with transparency. */
  channels: 1 | 3 | 4;
  /** Names of the network's input and output. */
  input: string;
  output: string;
  /** Pixels of the side it was made for. */
  side: number;
  /** Height and width where the network knows one size only. */
  fixed: [number, number] | null;
  /** Pixels of the side from which larger outputs take their colours; null: they are right at any. */
  colours_at: number | null;
  /** Whether parts of a picture are drawn by the `summary` of the whole one: right at any size. */
  told: boolean;
  thumbnail: string | null;
  licence: string;
  /** Of a sketch: it is known to draw something other than faces. */
  faceless?: boolean;
  /** Whether it may be used commercially. */
  commercial?: "yes" | "no" | "unknown";
  /** Of a network of one's own: how it takes and gives pictures; null: in doubt. Missing: as ours. */
  convention?: Convention | null;
}

export interface Manifest {
  students: Student[];
  /** What is shown first; on a screen of a phone's shape the tall one. */
  example: string;
  example_tall: string;
  /** Drawing mode: pictures a second, and width of the pen in the network's pixels; null: as in distill.prepare's sketches. */
  rate: number;
  line: number | null;
}

export async function loadManifest(): Promise<Manifest> {
  const file = await fetchFile("manifest.json");
  return JSON.parse(await file.text()) as Manifest;
}
