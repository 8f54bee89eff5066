import { Link } from 'wouter';
import { useLive } from '../data/live.ts';
import { Page } from '../parts/page.tsx';
import { type Columns, PagedTable, usePages } from '../parts/paged-table.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { EmptyState } from '../parts/problem.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { DrainOrResume } from './agent-actions.tsx';
import { type Agent, AgentState } from './agent-state.tsx';

export default function AgentsPage() {
  const pages = usePages();
  const list = useLive('GET /api/v1/agents', { query: pages.query }, { topic: 'tenant' });
  return (
    <Page
      title="Agents"
      description="Programs that run approved commands inside your network. The list is live."
      actions={<Link href="/agent-tokens">Enrolment tokens</Link>}
    >
      <PagedTable
        label="Agents"
        list={list}
        items={list.data?.agents ?? []}
        columns={COLUMNS}
        trackBy={({ agentId }) => agentId}
        pages={pages}
        empty={
          <EmptyState title="There are no agents yet">
            <p>
              <Link href="/agent-tokens">Create an enrolment token</Link>, then enrol and start the agent on its
              machine.
            </p>
          </EmptyState>
        }
      />
    </Page>
  );
}

const COLUMNS: Columns<Agent> = [
  {
    id: 'name',
    header: 'Agent',
    isRowHeader: true,
    minWidth: 140,
    cell: ({ agentId, name }) => (
      <Link href={`/agents/${encodeURIComponent(agentId)}`}>
        <UntrustedText text={name} max={63} />
      </Link>
    ),
  },
  { id: 'state', header: 'State', minWidth: 110, cell: ({ state }) => <AgentState state={state} /> },
  { id: 'for', header: 'For', minWidth: 120, cell: whereOf },
  {
    id: 'commands',
    header: 'Runs now',
    minWidth: 100,
    cell: ({ commands, process }) => (process ? `${commands.length} of ${process.slots} slots` : '–'),
  },
  {
    id: 'profiles',
    header: 'Profiles',
    minWidth: 160,
    cell: ({ process }) => <UntrustedText text={process?.profiles.join(', ') || '–'} />,
  },
  {
    id: 'sync',
    header: 'Last sync',
    minWidth: 110,
    cell: lastSyncOf,
  },
  { id: 'action', header: 'Action', minWidth: 120, cell: (agent) => <DrainOrResume agent={agent} isRow /> },
];

/** An agent that has stopped does not sync until it starts again. */
function lastSyncOf({ lastSyncAt, stoppedAt }: Agent) {
  if (lastSyncAt !== null) return <PointInTime at={lastSyncAt} />;
  if (stoppedAt === null) return 'never';
  return (
    <>
      stopped <PointInTime at={stoppedAt} />
    </>
  );
}

function whereOf({ environments, networkSegment }: Agent) {
  return <UntrustedText text={`${environments.join(', ')}${networkSegment === null ? '' : ` in ${networkSegment}`}`} />;
}
