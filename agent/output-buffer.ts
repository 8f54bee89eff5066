import { createHash } from 'node:crypto';
import { StringDecoder } from 'node:string_decoder';
import { OUTPUT_CHUNK_MAX_BYTES, OUTPUT_MAX_BYTES } from '../lambdas/agents/agent-terms.ts';
import type { OutputChunk } from '../lambdas/agents/protocol.ts';
import { Redactor } from '../lambdas/agents/redact.ts';

export type StreamName = 'stdout' | 'stderr';

/** A code unit of text takes at most 3 bytes in UTF-8. */
const UNITS_MAX = Math.floor(OUTPUT_CHUNK_MAX_BYTES / 3);
/** For the line that says that the limit is reached. */
const RESERVED_BYTES = 256;
export const LIMIT_REACHED = '\nThe output reached its limit. The rest is counted and not stored.\n';

/**
 * Output of one command: decoded, redacted and cut into numbered chunks. It holds only what the runtime has not confirmed.
 * What exceeds the limit is counted and not stored.
 */
export class OutputBuffer {
  readonly #streams: Record<StreamName, { decoder: StringDecoder; redactor: Redactor }>;
  readonly #now: () => string;
  #text: { type: OutputChunk['chunk_type']; data: string }[] = [];
  #queue: OutputChunk[] = [];
  #nextSeq = 0;
  #producedBytes = 0;
  #isOverLimit = false;
  #droppedBytes = 0;
  readonly #hash = createHash('sha256');
  #confirmed = { bytes: 0, chunks: 0 };

  constructor(secrets: readonly string[], now: () => string) {
    const stream = () => ({ decoder: new StringDecoder('utf8'), redactor: new Redactor(secrets) });
    this.#streams = { stdout: stream(), stderr: stream() };
    this.#now = now;
  }

  take(name: StreamName, bytes: Buffer): void {
    if (this.#isOverLimit) {
      this.#droppedBytes += bytes.length;
      return;
    }
    const { decoder, redactor } = this.#streams[name];
    this.#add(name, redactor.push(decoder.write(bytes)));
  }

  /** A line of the agent itself. */
  status(line: string): void {
    this.#add('status', line);
  }

  /** All streams have ended. */
  end(): void {
    for (const name of ['stdout', 'stderr'] as const) {
      const { decoder, redactor } = this.#streams[name];
      if (!this.#isOverLimit) this.#add(name, redactor.push(decoder.end()) + redactor.end());
    }
  }

  /** How much is waiting to be sent, in characters. */
  get waiting(): number {
    return [...this.#text, ...this.#queue].reduce((sum, { data }) => sum + data.length, 0);
  }

  /** The next chunks to send. Returns the same chunks until they are confirmed. */
  chunks(max: number): OutputChunk[] {
    for (const { type, data } of this.#text) {
      for (const part of parts(data)) {
        this.#queue.push({ stream_seq: this.#nextSeq, chunk_type: type, at: this.#now(), data: part });
        this.#nextSeq += 1;
      }
    }
    this.#text = [];
    return this.#queue.slice(0, max);
  }

  /** The runtime has stored all chunks before this number. */
  confirm(nextSeq: number): void {
    for (let [first] = this.#queue; first && first.stream_seq < nextSeq; [first] = this.#queue) {
      this.#hash.update(first.data);
      this.#confirmed.bytes += Buffer.byteLength(first.data);
      this.#confirmed.chunks += 1;
      this.#queue.shift();
    }
  }

  /** Nothing more is sent: what waits is dropped, and so is all further output. */
  stop(): void {
    this.#isOverLimit = true;
    this.#droppedBytes += [...this.#text, ...this.#queue].reduce((sum, { data }) => sum + Buffer.byteLength(data), 0);
    this.#text = [];
    this.#queue = [];
  }

  /** Covers what the runtime has stored. */
  digest(): { sha256: string; bytes: number; chunks: number; dropped_bytes: number } {
    return { sha256: this.#hash.copy().digest('hex'), ...this.#confirmed, dropped_bytes: this.#droppedBytes };
  }

  #add(type: OutputChunk['chunk_type'], data: string): void {
    if (data === '' || this.#isOverLimit) return;
    const bytes = Buffer.byteLength(data);
    const free = OUTPUT_MAX_BYTES - RESERVED_BYTES - this.#producedBytes;
    if (bytes > free) {
      const stored = Buffer.from(data)
        .subarray(0, free)
        .toString('utf8')
        .replace(/\ufffd$/, '');
      this.#append(type, stored);
      this.#append('status', LIMIT_REACHED);
      this.#droppedBytes += bytes - Buffer.byteLength(stored);
      this.#isOverLimit = true;
      return;
    }
    this.#producedBytes += bytes;
    this.#append(type, data);
  }

  #append(type: OutputChunk['chunk_type'], data: string): void {
    const last = this.#text.at(-1);
    if (last?.type === type) last.data += data;
    else if (data !== '') this.#text.push({ type, data });
  }
}

/** Cuts a text into chunks. A character is never cut in two. */
function parts(text: string): string[] {
  const units = Buffer.byteLength(text) === text.length ? OUTPUT_CHUNK_MAX_BYTES : UNITS_MAX;
  const found: string[] = [];
  for (let from = 0; from < text.length; ) {
    const isPair = /[\ud800-\udbff]/.test(text.charAt(from + units - 1));
    const to = from + units - (isPair ? 1 : 0);
    found.push(text.slice(from, to));
    from = to;
  }
  return found;
}
