import { OUTPUT_CHUNKS_MAX, OUTPUT_MAX_BYTES } from './agent-terms.ts';
import type { OutputChunk, OutputResponse } from './protocol.ts';

/** One command: the attempt of a step under one lease. */
export interface CommandRef {
  tenant: string;
  runId: string;
  stepIndex: number;
  leaseVersion: number;
}

export type OutputStream = OutputChunk['chunk_type'];

/** A piece of output as it is stored: redacted again, numbered without gaps. */
export interface StoredChunk {
  seq: number;
  stream: OutputStream;
  at: string;
  data: string;
}

/** What is known about the output of a command. Chunks with a number below `nextSeq` are stored and never change. */
export interface OutputHead {
  nextSeq: number;
  /** Bytes that were received and stored. */
  bytes: number;
  /** The end of a stream that could be the beginning of a secret. It is stored with the next chunk of the stream. */
  held: Partial<Record<OutputStream, string>>;
  /** More output would exceed the limit. */
  full?: true;
  /** The rate limit is used up until this time. */
  busyUntil: number;
  /** The command has completed: nothing is added any more. */
  closed?: ClosedOutput;
  revision: number;
}

/** What the agent says about its output: how much it numbered, and how much it did not send. */
export interface ClaimedOutput {
  chunks: number;
  droppedBytes: number;
}

export interface ClosedOutput {
  at: string;
  droppedBytes: number;
  /** False if chunks that the agent numbered did not arrive. */
  complete: boolean;
}

/** What was stored of the output of a completed command. Receipts and evidence have digest and size. */
export interface OutputSummary {
  /** SHA-256 over the data of all chunks in their order. */
  sha256: string;
  bytes: number;
  chunks: number;
  droppedBytes: number;
  complete: boolean;
}

export const NO_OUTPUT: OutputHead = { nextSeq: 0, bytes: 0, held: {}, busyUntil: 0, revision: 0 };

/**
 * Removes what looks like a secret from the next part of a stream. `held` is what the call before held back, because it
 * could be the beginning of a secret that continues in `data`. The last call has `isLast`, and holds nothing back.
 */
export type Redact = (held: string, data: string, isLast: boolean) => { text: string; held: string };

/** Commands of one run share a partition of the table, which takes about 1 MB a second. */
const BYTES_PER_SECOND = 256 * 1024;
const BURST_MS = 2_000;
/** If an agent sends while it still has to wait for longer than this, nothing of the request is stored. */
const WAIT_MAX_MS = 5_000;

export interface Accepted {
  /** What to store, in order. */
  chunks: StoredChunk[];
  head: OutputHead;
  response: OutputResponse;
}

/**
 * Decides which of these chunks to store: those that continue the stored ones without a gap. Chunks that are already stored
 * are skipped, so a request can be repeated. The response says which chunk to send next, and how long to wait before.
 */
export function acceptChunks(
  head: OutputHead,
  received: readonly OutputChunk[],
  nowMs: number,
  redact: Redact,
): Accepted {
  const mustWaitMs = head.busyUntil - nowMs - BURST_MS;
  if (head.closed || head.full || mustWaitMs > WAIT_MAX_MS) return unchanged(head, mustWaitMs);
  const next = { ...head, held: { ...head.held } };
  const chunks: StoredChunk[] = [];
  for (const { stream_seq: seq, chunk_type: stream, at, data } of received) {
    if (seq < next.nextSeq) continue;
    if (seq > next.nextSeq) break;
    const bytes = Buffer.byteLength(data);
    if (next.bytes + bytes > OUTPUT_MAX_BYTES || seq >= OUTPUT_CHUNKS_MAX) {
      next.full = true;
      break;
    }
    const { text, held } = redact(next.held[stream] ?? '', data, false);
    chunks.push({ seq, stream, at, data: text });
    next.held[stream] = held;
    next.nextSeq += 1;
    next.bytes += bytes;
  }
  const spentMs = ((next.bytes - head.bytes) / BYTES_PER_SECOND) * 1000;
  next.busyUntil = Math.ceil(Math.max(nowMs, head.busyUntil) + spentMs);
  next.revision += 1;
  return { chunks, head: next, response: responseOf(next, next.busyUntil - nowMs - BURST_MS) };
}

/** The last chunks: what was held back of each stream. */
export function closeOutput(head: OutputHead, claimed: ClaimedOutput, at: string, redact: Redact): Accepted {
  const held = Object.entries(head.held).filter(([, text]) => text !== '') as [OutputStream, string][];
  const chunks = held.map(([stream, text], index) => ({
    seq: head.nextSeq + index,
    stream,
    at,
    data: redact(text, '', true).text,
  }));
  const { chunks: numbered, droppedBytes } = claimed;
  const complete = head.full === true || numbered <= head.nextSeq;
  const closed = {
    ...head,
    nextSeq: head.nextSeq + chunks.length,
    held: {},
    closed: { at, droppedBytes, complete },
    revision: head.revision + 1,
  };
  return { chunks, head: closed, response: responseOf(closed, 0) };
}

function unchanged(head: OutputHead, waitMs: number): Accepted {
  return { chunks: [], head, response: responseOf(head, waitMs) };
}

const responseOf = ({ nextSeq, full, closed }: OutputHead, waitMs: number) => ({
  next_seq: nextSeq,
  wait_ms: Math.max(0, Math.ceil(waitMs)),
  full: full === true || closed !== undefined,
});
