/** Numbers as the user's language writes them. */
import { language } from "./strings";

/** One digit after the point. */
export function decimal(value: number): string {
  return value.toLocaleString(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
}

/** Seconds as minutes and seconds: 1:05. */
export function clock(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds) % 60).padStart(2, "0")}`;
}

export const megabytes = (bytes: number) => decimal(bytes / 1e6);
export const percent = (count: number) => `${count} %`;
export const pixels = (count: number) => `${count} px`;
