import { type Clock, isoNow } from '../entry/ports.ts';
import { later } from '../run/lease.ts';
import type { RunFilter } from '../run/run-filter.ts';
import type { RunStore } from '../run/run-store.ts';
import { bold, type Inline, type Message, ownText, quoted, richText, sentence } from './block-kit.ts';

const SHOWN_RUNS = 10;
const TITLE_MAX_CHARACTERS = 80;
const DAY_MS = 24 * 60 * 60_000;
const COUNTED_MAX = 1_000;

/** The newest runs of a tenant. */
export async function recentRuns({ runs }: { runs: Pick<RunStore, 'listRuns'> }, tenant: string): Promise<Message> {
  const { items } = await runs.listRuns(tenant, { limit: SHOWN_RUNS });
  if (items.length === 0) return sentence('There are no runs yet.');
  const lines = items.map(({ status, enrichment, subject, runId }): Inline[] => [
    bold(status.replaceAll('_', ' ')),
    ownText(' '),
    quoted(enrichment?.title ?? subject ?? runId, TITLE_MAX_CHARACTERS),
    ownText(` ${runId}`),
  ]);
  return { text: 'The newest runs', blocks: [richText(lines)] };
}

/** How many runs need attention. `countersign status` says what to do. */
export async function countsMessage(
  { runs, clock }: { runs: Pick<RunStore, 'countRuns'>; clock: Clock },
  tenant: string,
): Promise<Message> {
  const since = later(isoNow(clock), -DAY_MS);
  const wanted: [string, RunFilter][] = [
    ['need a human', { needsResolution: true }],
    ['wait for overdue approvals', { overdue: true }],
    ['wait for approvals', { status: 'waiting_approval' }],
    ['are running', { status: 'running' }],
    ['failed in the last day', { status: 'failed_terminal', since }],
  ];
  const counts = await runs.countRuns(
    tenant,
    wanted.map(([, filter]) => filter),
    COUNTED_MAX,
  );
  const texts = wanted.map(([text], index) => {
    const { count, atLeast } = counts[index] ?? { count: 0 };
    return `${atLeast ? 'more than ' : ''}${count} ${text}`;
  });
  return sentence(`Runs: ${texts.join(', ')}. "countersign status" says what to do.`);
}
