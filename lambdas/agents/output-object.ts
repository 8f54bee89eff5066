import { createHash } from 'node:crypto';
import * as z from 'zod';
import { OUTPUT_CHUNK_MAX_BYTES } from './agent-terms.ts';
import type { CommandRef, OutputSummary, StoredChunk } from './output.ts';
import type { OutputArchive } from './output-store.ts';

/**
 * The complete output of a command as one object: lines of JSON. The first line has size, digest and an index of
 * positions, so that a part can be read without the rest. Each other line is a chunk.
 */
const FORMAT = 'countersign-output/1';

const Header = z.object({
  format: z.literal(FORMAT),
  sha256: z.string(),
  bytes: z.int(),
  chunks: z.int(),
  droppedBytes: z.int(),
  complete: z.boolean(),
  /** Number of a chunk, and its position after the first line. */
  index: z.array(z.tuple([z.int(), z.int()])),
});
type Header = z.infer<typeof Header>;

const Chunk = z.object({
  seq: z.int(),
  stream: z.enum(['stdout', 'stderr', 'status']),
  at: z.string(),
  data: z.string(),
});

/** The index has one entry for this many bytes: 10 MB of control characters, which are 60 MB as JSON, have 240 entries. */
const INDEXED_EACH_BYTES = 256 * 1024;
/** The first line is shorter than this. */
const HEADER_MAX_BYTES = 16 * 1024;
/** JSON writes a control character with six bytes. */
const LINE_MAX_BYTES = 6 * OUTPUT_CHUNK_MAX_BYTES + 1024;

export const outputKey = ({ tenant, runId, stepIndex, leaseVersion }: CommandRef): string =>
  `output/${tenant}/${runId}/${stepIndex}-${leaseVersion}.ndjson`;

type Facts = Pick<OutputSummary, 'droppedBytes' | 'complete'>;

export async function outputObject(
  chunks: AsyncIterable<StoredChunk[]>,
  facts: Facts,
): Promise<{ content: Buffer; summary: OutputSummary }> {
  const digest = createHash('sha256');
  const lines: Buffer[] = [];
  const index: Header['index'] = [];
  let position = 0;
  let bytes = 0;
  let indexedAt = -INDEXED_EACH_BYTES;
  for await (const page of chunks) {
    for (const chunk of page) {
      const line = Buffer.from(`${JSON.stringify(chunk)}\n`);
      if (position - indexedAt >= INDEXED_EACH_BYTES) {
        index.push([chunk.seq, position]);
        indexedAt = position;
      }
      digest.update(chunk.data);
      bytes += Buffer.byteLength(chunk.data);
      position += line.length;
      lines.push(line);
    }
  }
  const summary = { sha256: digest.digest('hex'), bytes, chunks: lines.length, ...facts };
  const header = Buffer.from(`${JSON.stringify({ format: FORMAT, ...summary, index } satisfies Header)}\n`);
  return { content: Buffer.concat([header, ...lines]), summary };
}

export interface ObjectPart {
  summary: OutputSummary;
  chunks: StoredChunk[];
}

/** Reads chunks from a number on, about `maxBytes` of them but at least one. Undefined if there is no such object. */
export async function readObject(
  archive: Pick<OutputArchive, 'read'>,
  command: CommandRef,
  from: number,
  maxBytes: number,
): Promise<ObjectPart | undefined> {
  const key = outputKey(command);
  const beginning = await archive.read(key, 0, HEADER_MAX_BYTES);
  if (!beginning) return undefined;
  const headerLength = beginning.indexOf('\n') + 1;
  const { format: _known, index, ...summary } = Header.parse(JSON.parse(beginning.toString('utf8', 0, headerLength)));
  if (from >= summary.chunks) return { summary, chunks: [] };
  const [, offset] = index.findLast(([seq]) => seq <= from) ?? [0, 0];
  const start = headerLength + offset;
  // The index points to a chunk before `from`; up to INDEXED_EACH_BYTES lie between them.
  const part = await archive.read(key, start, start + INDEXED_EACH_BYTES + LINE_MAX_BYTES + maxBytes);
  return { summary, chunks: wholeChunks(part ?? Buffer.alloc(0), from, maxBytes) };
}

function wholeChunks(part: Buffer, from: number, maxBytes: number): StoredChunk[] {
  const chunks: StoredChunk[] = [];
  let bytes = 0;
  for (let start = 0, end = part.indexOf('\n'); end >= 0; start = end + 1, end = part.indexOf('\n', start)) {
    const chunk = Chunk.parse(JSON.parse(part.toString('utf8', start, end)));
    if (chunk.seq < from) continue;
    bytes += end - start;
    if (chunks.length > 0 && bytes > maxBytes) break;
    chunks.push(chunk);
  }
  return chunks;
}
