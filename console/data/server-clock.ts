/** `Date` of a response has whole seconds. */
const SECOND_MS = 1_000;

/** How far the clock of the API is ahead of the browser's: between these. */
let ahead = { minMs: Number.NEGATIVE_INFINITY, maxMs: Number.POSITIVE_INFINITY };

/** Learns the time of the API from the header `Date` of a response. */
export function learnServerTime(date: string | null, sentMs: number, receivedMs: number): void {
  const saidMs = Date.parse(date ?? '');
  if (Number.isNaN(saidMs)) return;
  const heard = { minMs: saidMs - receivedMs, maxMs: saidMs + SECOND_MS - sentMs };
  const both = { minMs: Math.max(ahead.minMs, heard.minMs), maxMs: Math.min(ahead.maxMs, heard.maxMs) };
  // If they contradict each other, one of the clocks was set.
  ahead = both.minMs <= both.maxMs ? both : heard;
}

/** Now, by the clock of the API, whose times the pages show. The clock of a browser may be wrong by hours. */
export const serverNow = (): number => Date.now() + Math.min(Math.max(0, ahead.minMs), ahead.maxMs);
