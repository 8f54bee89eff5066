import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  OUTPUT_CHUNK_MAX_BYTES,
  OUTPUT_CHUNKS_MAX,
  OUTPUT_CHUNKS_PER_REQUEST_MAX,
  OUTPUT_MAX_BYTES,
} from '../../lambdas/agents/agent-terms.ts';
import type { CommandRef } from '../../lambdas/agents/output.ts';
import { outputKey } from '../../lambdas/agents/output-object.ts';
import { OutputChunk } from '../../lambdas/agents/protocol.ts';
import { type OutputPart, readOutput } from '../../lambdas/agents/read-output.ts';
import { redactArrived } from '../../lambdas/agents/redact-arrived.ts';
import { appendOutput, finishOutput, storeOutput } from '../../lambdas/agents/store-output.ts';
import { FakeClock, STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';
import { MemoryOutput, MemoryOutputArchive } from '../fakes/memory/memory-output.ts';

const COMMAND: CommandRef = { tenant: 'acme', runId: 'run_1', stepIndex: 2, leaseVersion: 1 };
const PAGE_BYTES = 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1000;

const chunk = (stream_seq: number, data: string, chunk_type: OutputChunk['chunk_type'] = 'stdout'): OutputChunk => ({
  stream_seq,
  chunk_type,
  at: STORY_BEGINS_AT,
  data,
});

class Crash extends Error {}

let ports: ReturnType<typeof open>;
function open() {
  let failing: { what: string; times: number } | undefined;
  const output = new MemoryOutput(async (what, call) => {
    if (failing?.what === what && --failing.times < 0) throw new Crash(what);
    return call();
  });
  return {
    output,
    archive: new MemoryOutputArchive(),
    redact: redactArrived,
    clock: new FakeClock(),
    log: new MemoryLog(),
    /** The function crashes before this call, after so many of them. */
    crashAt: (what: string, after = 0) => {
      failing = { what, times: after };
    },
    recover: () => {
      failing = undefined;
    },
  };
}
beforeEach(() => {
  ports = open();
});

const send = (...chunks: OutputChunk[]) => appendOutput(ports, COMMAND, chunks);
const finish = (chunks: number, droppedBytes = 0) => finishOutput(ports, COMMAND, { chunks, droppedBytes });
const read = (since = 0, maxBytes = PAGE_BYTES) => readOutput(ports, COMMAND, since, maxBytes);
const textOf = ({ chunks }: OutputPart) => chunks.map(({ data }) => data).join('');
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

async function readAll(maxBytes = PAGE_BYTES): Promise<string> {
  let text = '';
  for (let since = 0; ; ) {
    const part = await read(since, maxBytes);
    text += textOf(part);
    since = part.next;
    if (!part.more) return text;
  }
}

describe('chunks of output', () => {
  it('are stored in order, and a request that is sent twice stores them once', async () => {
    expect(await send(chunk(0, '0'), chunk(1, '1'))).toEqual({ next_seq: 2, wait_ms: 0, full: false });
    expect(await send(chunk(0, '0'), chunk(1, '1'))).toEqual({ next_seq: 2, wait_ms: 0, full: false });
    expect(await send(chunk(1, 'other'), chunk(2, '2'))).toMatchObject({ next_seq: 3 });
    expect(textOf(await read())).toBe('012');
  });

  it('after a gap are not stored, and the response says from where to repeat', async () => {
    await send(chunk(0, '0'));
    expect(await send(chunk(2, '2'), chunk(3, '3'))).toMatchObject({ next_seq: 1 });
    expect(await send(chunk(1, '1'), chunk(3, '3'))).toMatchObject({ next_seq: 2 });
    expect(textOf(await read())).toBe('01');
  });

  it('survive a crash at any point of a request: the same request again stores the rest', async () => {
    const calls = ['output.head', 'output.chunk', 'output.saveHead'];
    for (const [index, call] of calls.entries()) {
      ports = open();
      await send(chunk(0, '0'));
      ports.crashAt(call, call === 'output.chunk' ? 1 : 0);
      await expect(send(chunk(1, '1'), chunk(2, '2'))).rejects.toThrow(Crash);
      ports.recover();
      expect(textOf(await read()), `after a crash at ${calls[index]}`).toBe('0');
      // The agent may repeat with fewer chunks at a time.
      await send(chunk(1, '1'));
      await send(chunk(2, '2'));
      expect(textOf(await read())).toBe('012');
    }
  });

  it('of two requests at once are stored once', async () => {
    await Promise.all([send(chunk(0, '0')), send(chunk(0, '0')), send(chunk(0, '0'), chunk(1, '1'))]);
    await send(chunk(0, '0'), chunk(1, '1'));
    expect(textOf(await read())).toBe('01');
  });

  it('are limited in size by their bytes, not by their characters', () => {
    expect(OutputChunk.safeParse(chunk(0, 'x'.repeat(OUTPUT_CHUNK_MAX_BYTES))).success).toBe(true);
    expect(OutputChunk.safeParse(chunk(0, 'x'.repeat(OUTPUT_CHUNK_MAX_BYTES + 1))).success).toBe(false);
    expect(OutputChunk.safeParse(chunk(0, '€'.repeat(OUTPUT_CHUNK_MAX_BYTES / 2))).success).toBe(false);
  });

  it('are limited in number, so that single bytes cannot make millions of rows', async () => {
    const head = { nextSeq: OUTPUT_CHUNKS_MAX, bytes: 1, held: {}, busyUntil: 0, revision: 1 };
    await ports.output.append(COMMAND, [], head);
    expect(await send(chunk(OUTPUT_CHUNKS_MAX, 'x'))).toMatchObject({ next_seq: OUTPUT_CHUNKS_MAX, full: true });
  });

  it('arrive at a limited rate: the response says how long to wait, and who does not wait is not served', async () => {
    const big = 'x'.repeat(OUTPUT_CHUNK_MAX_BYTES);
    let seq = 0;
    const sendEight = () => {
      const chunks = Array.from({ length: OUTPUT_CHUNKS_PER_REQUEST_MAX }, (_, at) => chunk(seq + at, big));
      return send(...chunks);
    };
    let response = await sendEight();
    expect(response.wait_ms).toBe(0);
    for (let requests = 0; response.wait_ms < 5_000 && requests < 20; requests += 1) {
      seq = response.next_seq;
      response = await sendEight();
    }
    expect(response.wait_ms).toBeGreaterThanOrEqual(5_000);
    seq = response.next_seq;
    const refused = await sendEight();
    if (refused.next_seq !== seq) expect((await sendEight()).next_seq).toBe(refused.next_seq);
    ports.clock.advance(refused.wait_ms);
    expect((await sendEight()).next_seq).toBeGreaterThan(seq);
  });
});

describe('100 MB of output', () => {
  const LINE = 'the quick brown fox jumps over the lazy dog, again and again and again and aga\n';
  const DATA = LINE.repeat(Math.floor(OUTPUT_CHUNK_MAX_BYTES / LINE.length));
  const TOTAL_BYTES = 100 * 1024 * 1024;

  it('is stored up to the limit, and the rest is counted: neither side holds more than one request', async () => {
    let produced = 0;
    let seq = 0;
    let dropped = 0;
    let isFull = false;
    let requests = 0;
    while (produced < TOTAL_BYTES) {
      const count = isFull ? 1 : OUTPUT_CHUNKS_PER_REQUEST_MAX;
      produced += count * DATA.length;
      if (isFull) {
        dropped += DATA.length;
        continue;
      }
      let chunks = Array.from({ length: count }, (_, at) => chunk(seq + at, DATA));
      while (chunks.length > 0 && !isFull) {
        const response = await send(...chunks);
        requests += 1;
        ports.clock.advance(response.wait_ms);
        isFull = response.full;
        seq = response.next_seq;
        chunks = chunks.filter(({ stream_seq }) => stream_seq >= seq);
      }
      dropped += chunks.length * DATA.length;
    }
    const summary = await finish(seq, dropped);
    expect(summary.bytes).toBeGreaterThan(OUTPUT_MAX_BYTES - OUTPUT_CHUNK_MAX_BYTES);
    expect(summary.bytes).toBeLessThanOrEqual(OUTPUT_MAX_BYTES);
    expect(summary.bytes + summary.droppedBytes).toBe(produced);
    expect(summary).toMatchObject({ chunks: seq, complete: true, sha256: sha256(DATA.repeat(seq)) });
    expect(requests).toBeLessThan(40);
    ports.output.expire(COMMAND);
    expect(await readAll()).toBe(DATA.repeat(seq));
    // A page needs a part of the object, not all of it.
    expect(Math.max(...ports.archive.reads)).toBeLessThan(2 * PAGE_BYTES);
  });
});

describe('a secret in output', () => {
  const TOKEN = `ghp_${'a1B2'.repeat(9)}`;

  it.each([4, 10, 25])('is hidden when it arrives in two requests, cut after %i characters', async (at) => {
    await send(chunk(0, `token ${TOKEN.slice(0, at)}`));
    await send(chunk(1, `${TOKEN.slice(at)} is set\n`));
    await finish(2);
    expect(await readAll()).toBe('token [redacted] is set\n');
    expect(ports.output.inside()).not.toContain(TOKEN.slice(at));
    expect([...ports.archive.objects.values()].join()).not.toContain(TOKEN.slice(at));
  });

  it('is hidden in each character of its own request, and between the streams', async () => {
    let seq = 0;
    for (const character of `password=${'S3cr3t!x'} done\n`) {
      await send(chunk(seq, character), chunk(seq + 1, '.', 'stderr'));
      seq += 2;
    }
    await finish(seq);
    const { chunks } = await read();
    const out = chunks.filter(({ stream }) => stream === 'stdout').map(({ data }) => data);
    expect(out.join('')).toBe('password=[redacted] done\n');
  });

  it('does not delay other output: what cannot begin a secret is shown at once', async () => {
    await send(chunk(0, 'Progress: 45 %'));
    expect(textOf(await read())).toBe('Progress: 45 %');
  });

  it('that seems to begin at the end of the output is shown when the command completes', async () => {
    await send(chunk(0, 'no newline gh'));
    expect(await finish(1)).toMatchObject({ complete: true, sha256: sha256('no newline gh') });
    expect(await readAll()).toBe('no newline gh');
  });
});

describe('a completed command', () => {
  it('has its output in one object with the digest of exactly what is stored', async () => {
    await send(chunk(0, 'out\n'), chunk(1, 'err\n', 'stderr'));
    const summary = await finish(2);
    expect(summary).toEqual({ sha256: sha256('out\nerr\n'), bytes: 8, chunks: 2, droppedBytes: 0, complete: true });
    const lines = ports.archive.objects.get(outputKey(COMMAND))?.toString().trimEnd().split('\n') ?? [];
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ format: 'countersign-output/1', ...summary });
    expect(lines.slice(1).map((line) => JSON.parse(line).data)).toEqual(['out\n', 'err\n']);
  });

  it('accepts no more output, and the same result again changes nothing', async () => {
    await send(chunk(0, '1'));
    const summary = await finish(1);
    expect(await send(chunk(1, 'late'))).toMatchObject({ next_seq: 1, full: true });
    expect(await finish(1)).toEqual(summary);
    expect(await readAll()).toBe('1');
  });

  it('whose last chunks did not arrive says so', async () => {
    await send(chunk(0, '1'));
    expect(await finish(3)).toMatchObject({ chunks: 1, complete: false });
  });

  it('without output has an empty digest and no object', async () => {
    expect(await finish(0)).toMatchObject({ sha256: sha256(''), chunks: 0, complete: true });
    expect(ports.archive.objects.size).toBe(0);
  });

  it('gets its object later if S3 does not respond', async () => {
    await send(chunk(0, '1'));
    ports.archive.isDown = true;
    expect(await finish(1)).toMatchObject({ sha256: sha256('1') });
    const [entry] = ports.output.outbox;
    expect(entry).toMatchObject({ kind: 'store_output', id: 'acme.run_1.store_output.2.1' });
    await expect(storeOutput(ports, COMMAND)).rejects.toThrow('S3 does not respond');
    ports.archive.isDown = false;
    await storeOutput(ports, COMMAND);
    ports.output.expire(COMMAND);
    expect(await read()).toMatchObject({ closed: true, summary: { complete: true, sha256: sha256('1') } });
  });

  it('whose function crashed before the object was written gets it with the repeated request', async () => {
    await send(chunk(0, '1'));
    ports.crashAt('output.saveHead');
    await expect(finish(1)).rejects.toThrow(Crash);
    ports.recover();
    await finish(1);
    expect(ports.archive.objects.size).toBe(1);
  });
});

describe('reading output', () => {
  it('returns pages that continue where the last one ended, from rows and from the object alike', async () => {
    const lines = Array.from({ length: 200 }, (_, seq) => `line ${seq} ${'x'.repeat(seq * 10)}\n`);
    for (const [seq, line] of lines.entries()) await send(chunk(seq, line));
    expect(await readAll(5_000)).toBe(lines.join(''));
    await finish(lines.length);
    expect(await readAll(5_000)).toBe(lines.join(''));
    ports.output.expire(COMMAND);
    expect(await readAll(5_000)).toBe(lines.join(''));
    expect(await read(lines.length)).toMatchObject({ chunks: [], next: lines.length, more: false, closed: true });
  });

  it('uses the object before rows begin to disappear', async () => {
    await send(chunk(0, '1'));
    await finish(1);
    ports.clock.advance(6.5 * DAY_MS);
    expect(textOf(await read())).toBe('1');
    expect(ports.archive.reads.length).toBeGreaterThan(0);
  });

  it('of a command whose agent was lost returns what arrived, after its rows have expired, too', async () => {
    await send(chunk(0, 'half of i'));
    expect(await read()).toMatchObject({ closed: false, next: 1, more: false });
    await storeOutput(ports, COMMAND);
    ports.output.expire(COMMAND);
    expect(await read()).toMatchObject({ closed: true, summary: { complete: false } });
    expect(await readAll()).toBe('half of i');
  });
});
