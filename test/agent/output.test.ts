import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { LIMIT_REACHED, OutputBuffer } from '../../agent/output-buffer.ts';
import { CORRECTION_MAX_MS, ServerClock } from '../../agent/server-clock.ts';
import { OUTPUT_CHUNK_MAX_BYTES, OUTPUT_MAX_BYTES } from '../../lambdas/agents/agent-terms.ts';

const AT = '2026-11-16T10:00:00.000Z';
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const textOf = (chunks: { data: string }[]) => chunks.map(({ data }) => data).join('');

describe('the output of a command', () => {
  it('is cut into numbered chunks that never split a character, and hashed as far as it is stored', () => {
    const buffer = new OutputBuffer([], () => AT);
    const text = '😀é'.repeat(30_000);
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += 1_001) buffer.take('stdout', bytes.subarray(at, at + 1_001));
    buffer.end();
    const chunks = buffer.chunks(100);
    expect(textOf(chunks)).toBe(text);
    expect(chunks.map(({ stream_seq }) => stream_seq)).toEqual(chunks.map((_, index) => index));
    expect(chunks.every(({ data }) => Buffer.byteLength(data) <= OUTPUT_CHUNK_MAX_BYTES && data.isWellFormed())).toBe(
      true,
    );
    buffer.confirm(2);
    const stored = textOf(chunks.slice(0, 2));
    expect(buffer.digest()).toEqual({
      sha256: sha256(stored),
      bytes: Buffer.byteLength(stored),
      chunks: 2,
      dropped_bytes: 0,
    });
    expect(buffer.chunks(1)[0]?.stream_seq).toBe(2);
  });

  it('hides a secret that comes in parts, on each stream by itself', () => {
    const buffer = new OutputBuffer(['swordfish-1'], () => AT);
    for (const part of ['a sword', 'fish', '-1 b\n']) {
      buffer.take('stdout', Buffer.from(part));
      buffer.take('stderr', Buffer.from(part.toUpperCase()));
    }
    buffer.end();
    const chunks = buffer.chunks(100);
    const on = (type: string) => textOf(chunks.filter(({ chunk_type }) => chunk_type === type));
    expect([on('stdout'), on('stderr')]).toEqual(['a [redacted] b\n', 'A SWORDFISH-1 B\n']);
  });

  it('stops at the limit, says so, and counts the rest', () => {
    const buffer = new OutputBuffer([], () => AT);
    const block = Buffer.alloc(1024 * 1024, 'x');
    for (let count = 0; count < 12; count += 1) buffer.take('stdout', block);
    buffer.end();
    const text = textOf(buffer.chunks(1_000));
    buffer.confirm(1_000);
    const { bytes, dropped_bytes } = buffer.digest();
    expect(text.endsWith(LIMIT_REACHED)).toBe(true);
    expect(bytes).toBeLessThanOrEqual(OUTPUT_MAX_BYTES);
    expect(bytes - Buffer.byteLength(LIMIT_REACHED) + dropped_bytes).toBe(12 * 1024 * 1024);
  });

  it('that is not stored when the lease is lost counts as dropped', () => {
    const buffer = new OutputBuffer([], () => AT);
    buffer.take('stdout', Buffer.from('lost'));
    buffer.stop();
    buffer.take('stdout', Buffer.from('lost'));
    expect(buffer.chunks(8)).toEqual([]);
    expect(buffer.digest()).toEqual({ sha256: sha256(''), bytes: 0, chunks: 0, dropped_bytes: 8 });
  });
});

describe('the time of the runtime', () => {
  const machine = { at: 1_000_000, since: 0, wall: () => machine.at, monotonic: () => machine.since };

  it('is learned from responses, and does not follow jumps of the clock of this machine', () => {
    const clock = new ServerClock(machine);
    clock.learn(1_300_000, 0);
    machine.since += 500;
    machine.at += 3_600_000;
    expect(clock.now()).toBe(1_300_500);
    machine.at -= 3_600_000;
  });

  it('is not believed if it is too far from the clock of this machine', () => {
    const clock = new ServerClock(machine);
    const before = clock.now();
    clock.learn(machine.at + CORRECTION_MAX_MS + 1_000, machine.since);
    expect([clock.now(), clock.isWrong]).toEqual([before, true]);
  });
});
