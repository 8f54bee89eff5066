import { useLive } from './live.ts';
import { useMe } from './me.ts';

/** What waits for the signed-in person. */
export function useInbox() {
  const { data: me } = useMe();
  const enabled = me !== undefined;
  const approvals = useLive(
    'GET /api/v1/approvals',
    { query: { mine: 'true', limit: 50 } },
    { topic: 'tenant', enabled },
  );
  const assigned = useLive(
    'GET /api/v1/runs',
    { query: { assignee: me?.person ?? '', limit: 25 } },
    { topic: 'tenant', enabled },
  );
  const needed = useLive(
    'GET /api/v1/runs',
    { query: { needsResolution: 'true', limit: 25 } },
    { topic: 'tenant', enabled },
  );
  return { approvals, assigned, needed };
}

/** For the header and the title of the tab: approvals that the person may decide, and runs that need a person. */
export function useInboxCount(): number {
  const { approvals, needed } = useInbox();
  return (approvals.data?.approvals.length ?? 0) + (needed.data?.runs.length ?? 0);
}
