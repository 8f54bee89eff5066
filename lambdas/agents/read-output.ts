import type { Clock } from '../entry/ports.ts';
import type { CommandRef, OutputHead, OutputSummary, StoredChunk } from './output.ts';
import { readObject } from './output-object.ts';
import { OUTPUT_ROWS_STORED_MS, type OutputArchive, type OutputStore } from './output-store.ts';

/** DynamoDB deletes expired rows in any order, so the object is read from a day before on. */
const ROWS_READ_MS = OUTPUT_ROWS_STORED_MS - 24 * 60 * 60 * 1000;

export interface OutputReader {
  output: Pick<OutputStore, 'head' | 'chunks'>;
  archive: Pick<OutputArchive, 'read'>;
  clock: Clock;
}

export interface OutputPart {
  chunks: StoredChunk[];
  /** The number of the next chunk. */
  next: number;
  /** There is more to read now. */
  more: boolean;
  /** The command has completed: after these chunks and those that follow at once, there are none. */
  closed: boolean;
  /** Of the whole output, once it is known. */
  summary?: Pick<OutputSummary, 'bytes' | 'droppedBytes' | 'complete'> & { sha256?: string };
}

/** A part of the output of a command, from a chunk on: from its rows or, when they expire, from its object. */
export async function readOutput(
  reader: OutputReader,
  command: CommandRef,
  since: number,
  maxBytes: number,
): Promise<OutputPart> {
  const head = await reader.output.head(command);
  const isOld = head?.closed !== undefined && reader.clock.now() - Date.parse(head.closed.at) > ROWS_READ_MS;
  if (!head || isOld) {
    const part = await readObject(reader.archive, command, since, maxBytes);
    if (part) return partOf(since, part.chunks, part.summary.chunks, { closed: true, summary: part.summary });
  }
  if (!head) return { chunks: [], next: since, more: false, closed: false };
  return fromRows(reader, command, head, since, maxBytes);
}

async function fromRows(
  { output }: OutputReader,
  command: CommandRef,
  head: OutputHead,
  since: number,
  maxBytes: number,
): Promise<OutputPart> {
  const chunks: StoredChunk[] = [];
  let bytes = 0;
  read: for await (const page of output.chunks(command, since, head.nextSeq)) {
    for (const chunk of page) {
      bytes += Buffer.byteLength(chunk.data);
      if (chunks.length > 0 && bytes > maxBytes) break read;
      chunks.push(chunk);
    }
  }
  const { closed } = head;
  return partOf(since, chunks, head.nextSeq, {
    closed: closed !== undefined,
    ...(closed && { summary: { bytes: head.bytes, droppedBytes: closed.droppedBytes, complete: closed.complete } }),
  });
}

function partOf(since: number, chunks: StoredChunk[], end: number, rest: Pick<OutputPart, 'closed' | 'summary'>) {
  const last = chunks.at(-1);
  const next = last ? last.seq + 1 : since;
  return { chunks, next, more: last !== undefined && next < end, ...rest };
}
