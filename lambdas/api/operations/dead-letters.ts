import type { Contract } from '../contract/index.ts';
import {
  type DeadLetter,
  type DeadLetterSelection,
  deadLetterRoutes,
  type QueueCount,
  statusRoutes,
} from '../contract/operations.ts';
import { router } from '../router.ts';
import { type RunFinder, resolveRunId } from '../runs/resolve-run-id.ts';
import { readStatus, type StatusPorts } from './status.ts';

/** A message as its dead-letter queue holds it. One that cannot be read has no run. */
export type StoredLetter = Pick<DeadLetter, 'id' | 'queue' | 'sentAt' | 'attempts'> & { runId?: string; kind?: string };

export interface FoundLetters {
  queues: QueueCount[];
  letters: StoredLetter[];
}

/** Messages that failed too often. All methods see only the messages of one tenant. */
export interface DeadLetters {
  counts(tenant: string): Promise<(QueueCount & { oldestAt?: string })[]>;
  list(tenant: string, selection: DeadLetterSelection): Promise<FoundLetters>;
  /** Sends the messages back to their queues. A message for a run that has continued meanwhile changes nothing. */
  redrive(tenant: string, selection: DeadLetterSelection): Promise<FoundLetters>;
}

interface DeadLetterPorts extends StatusPorts {
  runs: StatusPorts['runs'] & RunFinder['runs'];
  deadLetters: DeadLetters;
}

const routes = { ...deadLetterRoutes, ...statusRoutes };

/** One function reads the dead-letter queues, and the status that includes them. */
export const handleDeadLetters = router<DeadLetterPorts, Contract['deadLetters']>(routes, {
  async listDeadLetters(ports, { caller: { tenant }, query }) {
    const { queues, letters } = await ports.deadLetters.list(tenant, await withWholeRunId(ports, tenant, query));
    return { status: 200, body: { queues, deadLetters: await described(ports, tenant, letters) } };
  },
  async redriveDeadLetters(ports, { caller: { tenant }, body }) {
    const { queues } = await ports.deadLetters.redrive(tenant, await withWholeRunId(ports, tenant, body));
    return { status: 202, body: { redriven: queues } };
  },
  async getStatus(ports, { caller }) {
    return { status: 200, body: await readStatus(ports, caller) };
  },
});

async function withWholeRunId(ports: DeadLetterPorts, tenant: string, selection: DeadLetterSelection) {
  const { runId } = selection;
  return runId === undefined ? selection : { ...selection, runId: await resolveRunId(ports, tenant, runId) };
}

/** With the run of each message, the oldest first. SQS does not keep why a message failed; the log does. */
async function described({ runs }: DeadLetterPorts, tenant: string, letters: StoredLetter[]): Promise<DeadLetter[]> {
  const stored = await runs.someRuns(
    tenant,
    letters.flatMap(({ runId }) => runId ?? []),
  );
  return letters
    .toSorted((a, b) => (a.sentAt < b.sentAt ? -1 : 1))
    .map(({ runId, kind = null, ...letter }) => {
      const run = stored.find((each) => each.runId === runId);
      const title = run?.enrichment?.title ?? null;
      return {
        ...letter,
        kind,
        run: runId === undefined ? null : { runId, title, status: run?.status ?? null },
        reason: reasonOf(letter, runId, run !== undefined),
      };
    });
}

function reasonOf({ attempts }: { attempts: number }, runId: string | undefined, isStored: boolean): string {
  if (runId === undefined) return 'the message cannot be read; a redrive fails again';
  if (!isStored) return 'its run is not stored; a redrive changes nothing';
  return `its function failed ${attempts} times; the log has the error of each`;
}
