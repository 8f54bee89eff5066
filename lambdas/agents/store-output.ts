import { type Clock, isoNow, type Log } from '../entry/ports.ts';
import { newOutboxEntry, type OutboxEntry } from '../outbox/outbox.ts';
import {
  acceptChunks,
  type ClaimedOutput,
  type CommandRef,
  closeOutput,
  NO_OUTPUT,
  type OutputHead,
  type OutputSummary,
  type Redact,
} from './output.ts';
import { outputKey, outputObject } from './output-object.ts';
import type { OutputArchive, OutputStore } from './output-store.ts';
import type { OutputChunk, OutputResponse } from './protocol.ts';

/** Another request of the same agent may store output at the same time. */
const TRIES_MAX = 4;

export interface OutputPorts {
  output: OutputStore;
  redact: Redact;
  clock: Clock;
}

/** Stores the chunks of a request. The same request again changes nothing. */
export async function appendOutput(
  { output, redact, clock }: OutputPorts,
  command: CommandRef,
  received: readonly OutputChunk[],
): Promise<OutputResponse> {
  for (let tries = 1; ; tries += 1) {
    const head = (await output.head(command)) ?? NO_OUTPUT;
    const accepted = acceptChunks(head, received, clock.now(), redact);
    const isChanged = accepted.head.revision !== head.revision;
    if (!isChanged || (await output.append(command, accepted.chunks, accepted.head))) return accepted.response;
    // The agent repeats from this number.
    if (tries === TRIES_MAX)
      return acceptChunks((await output.head(command)) ?? head, [], clock.now(), redact).response;
  }
}

export interface ArchivePorts extends OutputPorts {
  archive: OutputArchive;
  log: Log;
}

/**
 * Ends the output of a command, before its result is committed: no more chunks are accepted, and all of them are written
 * to one object. A command whose result is committed therefore has an object, or an outbox entry that writes it. A crash
 * before the commit leaves rows and perhaps the object; the agent repeats its request, and the same is done again.
 */
export async function finishOutput(
  ports: ArchivePorts,
  command: CommandRef,
  claimed: ClaimedOutput,
): Promise<OutputSummary> {
  const head = await closed(ports, command, claimed);
  const { content, summary } = await assemble(ports, command, head);
  if (summary.chunks === 0) return summary;
  try {
    await ports.archive.putOnce(outputKey(command), content);
  } catch (error) {
    // The result of the command matters more than its output, so it does not wait for S3.
    ports.log.warn('the output of a command could not be written and will be retried', { ...command, error });
    await ports.output.enqueue(storeOutputEntry(command, isoNow(ports.clock)));
  }
  return summary;
}

/** Completes the outbox entry. Throws while the object cannot be written, so that the entry is sent again. */
export async function storeOutput(
  ports: Pick<ArchivePorts, 'output' | 'archive' | 'clock' | 'redact'>,
  command: CommandRef,
): Promise<void> {
  // The agent of a command without a result is lost: what has arrived is all there will be.
  const head = await closed(ports, command, { chunks: Number.MAX_SAFE_INTEGER, droppedBytes: 0 });
  const { content, summary } = await assemble(ports, command, head);
  if (summary.chunks > 0) await ports.archive.putOnce(outputKey(command), content);
}

const storeOutputEntry = ({ tenant, runId, stepIndex, leaseVersion }: CommandRef, at: string): OutboxEntry =>
  newOutboxEntry({ kind: 'store_output', tenant, runId, stepIndex, leaseVersion }, at);

async function closed(
  { output, redact, clock }: OutputPorts,
  command: CommandRef,
  claimed: ClaimedOutput,
): Promise<OutputHead> {
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const head = (await output.head(command)) ?? NO_OUTPUT;
    if (head.closed) return head;
    const next = closeOutput(head, claimed, isoNow(clock), redact);
    if (await output.append(command, next.chunks, next.head)) return next.head;
  }
  throw new Error(`the output of ${command.runId} changes all the time; its agent repeats the request`);
}

const assemble = ({ output }: Pick<OutputPorts, 'output'>, command: CommandRef, { nextSeq, closed }: OutputHead) =>
  outputObject(output.chunks(command, 0, nextSeq), {
    droppedBytes: closed?.droppedBytes ?? 0,
    complete: closed?.complete ?? false,
  });
