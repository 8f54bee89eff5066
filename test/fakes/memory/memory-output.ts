import type { CommandRef, OutputHead, StoredChunk } from '../../../lambdas/agents/output.ts';
import type { OutputArchive, OutputStore } from '../../../lambdas/agents/output-store.ts';
import type { Clock } from '../../../lambdas/entry/ports.ts';
import type { OutboxEntry } from '../../../lambdas/outbox/outbox.ts';
import { type Passage, undisturbed } from '../passage.ts';
import { MemoryRows } from './memory-rows.ts';

const stepOf = ({ tenant, runId, stepIndex }: Omit<CommandRef, 'leaseVersion'>) => `${tenant}/${runId}/${stepIndex}`;
const commandOf = (command: CommandRef) => `${stepOf(command)}/${command.leaseVersion}`;
const padded = (seq: number) => String(seq).padStart(8, '0');

export class MemoryOutput implements OutputStore {
  readonly #heads = new MemoryRows<OutputHead>();
  readonly #chunks = new MemoryRows<StoredChunk>();
  readonly #leases = new Map<string, number>();
  readonly outbox: OutboxEntry[] = [];
  readonly #passage: Passage;

  constructor(passage: Passage = undisturbed) {
    this.#passage = passage;
  }

  head(command: CommandRef): Promise<OutputHead | undefined> {
    return this.#passage('output.head', async () => this.#heads.get(stepOf(command), String(command.leaseVersion)));
  }

  async append(command: CommandRef, chunks: readonly StoredChunk[], head: OutputHead): Promise<boolean> {
    for (const chunk of chunks) {
      await this.#passage('output.chunk', async () => {
        if (!this.#chunks.peek(commandOf(command), padded(chunk.seq))) {
          this.#chunks.set(commandOf(command), padded(chunk.seq), chunk);
        }
      });
    }
    return this.#passage('output.saveHead', async () => {
      const [step, lease] = [stepOf(command), String(command.leaseVersion)];
      if ((this.#heads.peek(step, lease)?.revision ?? 0) !== head.revision - 1) return false;
      this.#heads.set(step, lease, head);
      this.#leases.set(step, Math.max(command.leaseVersion, this.#leases.get(step) ?? 0));
      return true;
    });
  }

  async *chunks(command: CommandRef, from: number, to: number): AsyncGenerator<StoredChunk[]> {
    yield this.#chunks.inPartition(commandOf(command)).filter(({ seq }) => seq >= from && seq < to);
  }

  async lastLease(step: Omit<CommandRef, 'leaseVersion'>): Promise<number | undefined> {
    return this.#leases.get(stepOf(step));
  }

  async enqueue(entry: OutboxEntry): Promise<void> {
    this.outbox.push(entry);
  }

  /** As when the rows of a command have expired. */
  expire(command: CommandRef): void {
    for (const { seq } of this.#chunks.peekPartition(commandOf(command))) {
      this.#chunks.set(commandOf(command), padded(seq), undefined);
    }
    this.#heads.set(stepOf(command), String(command.leaseVersion), undefined);
  }

  /** Everything that is stored, as text. */
  inside(): string {
    return JSON.stringify([[...this.#heads.peekAll()], [...this.#chunks.peekAll()]]);
  }
}

/** The ports that routes about runs read output with. */
export const outputPorts = (clock: Clock) => ({
  output: new MemoryOutput(),
  archive: new MemoryOutputArchive(),
  clock,
});

export class MemoryOutputArchive implements OutputArchive {
  readonly objects = new Map<string, Buffer>();
  /** Sizes of the parts that were read. */
  readonly reads: number[] = [];
  isDown = false;

  async putOnce(key: string, content: Buffer): Promise<void> {
    if (this.isDown) throw new Error('S3 does not respond');
    if (!this.objects.has(key)) this.objects.set(key, Buffer.from(content));
  }

  async read(key: string, from: number, to: number): Promise<Buffer | undefined> {
    const part = this.objects.get(key)?.subarray(from, to);
    if (part) this.reads.push(part.length);
    return part && Buffer.from(part);
  }
}
