import type { OutputStore } from '../agents/output-store.ts';
import type { RunStore } from '../run/run-store.ts';
import { eventsOf, type LiveEvent, outputEventOf, type ParsedEventId } from './live-event.ts';

/** What a subscription sends at most. A client that missed more reads it over the API, in pages. */
const COMMITS_MAX = 100;
const CHUNKS_MAX = 50;

interface ReplayPorts {
  runs: Pick<RunStore, 'listCommits'>;
  output: Pick<OutputStore, 'chunks' | 'head'>;
}

/** The events after one that the client has. The commit of that event is sent again if it has more events. */
export async function missedEvents(
  { runs, output }: ReplayPorts,
  tenant: string,
  last: ParsedEventId,
): Promise<LiveEvent[]> {
  const { runId } = last;
  if (last.kind === 'commit') {
    const commits = await runs.listCommits(tenant, runId, { after: Math.max(0, last.commit - 1), limit: COMMITS_MAX });
    return commits
      .flatMap((commit) => eventsOf(runId, commit))
      .filter(({ meta }) => meta.commit > last.commit || last.index + 1 < meta.of);
  }
  const command = { tenant, runId, ...last.command };
  const head = await output.head(command);
  const events: LiveEvent[] = [];
  const end = Math.min(head?.nextSeq ?? 0, last.chunk + 1 + CHUNKS_MAX);
  for await (const chunks of output.chunks(command, last.chunk + 1, end)) {
    events.push(...chunks.map((chunk) => outputEventOf(command, chunk)));
  }
  return events;
}
