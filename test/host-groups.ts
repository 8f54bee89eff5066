/**
 * Test files that use one host, one after the other (`local/harness/shared-host.ts`): the start of a host and of its threads takes longer
 * than most of their tests. In `npm test` these files run as the group. A file that is named on the command line runs alone.
 */
export const HOST_GROUPS: Record<string, readonly string[]> = {
  'local/host-group-1': ['local/access/key-lengths', 'local/runs/crashes', 'local/runs/control', 'local/access/api'],
  'local/host-group-2': [
    'local/runs/rollback',
    'local/runs/governed-writes',
    'local/runs/webhooks',
    'local/runs/many-webhooks',
    'local/runs/lost-messages',
    'local/runs/storm',
    'local/runs/executions',
    'local/runs/caps',
    'local/runs/tools',
    'local/runs/outbox',
  ],
  'local/host-group-5': [
    // First: what it prints depends on the real time, which the clock of the host later leaves.
    'cli/runs/runs',
    'local/observability/traces',
    'cli/webhook/webhook-send',
    'local/runs/bulk',
    'local/mcp',
    'local/runs/request-counts',
    'local/runs/burst',
    'local/runs/stop-writes',
  ],
  'local/host-group-6': [
    // First: no alarm may have started before.
    'local/observability/alarms',
    'cli/workflow/workflow-plan',
    'local/sessions',
    'local/agents-api',
    'local/digest',
    'local/access/canaries',
  ],
  'local/host-group-7': [
    // First: the documented commands sign the real time.
    'cli/events',
    // Before files that change settings or policies: it lists the kinds of all changes.
    'local/access/people',
    'local/live-feed',
    // It changes the secrets of two tenants, and the next one leaves dead letters.
    'local/access/tenant-setup',
    'local/runs/dead-letters',
  ],
  'browser/host-group-3': [
    // First: an objective counts runs that failed in the last six hours, also those of other files.
    'browser/dashboard',
    'browser/console-pages',
    'browser/console-sessions',
    'browser/flags',
  ],
  'browser/host-group-4': [
    // First: it counts the runs in the metrics.
    'local/evidence',
    'browser/console-live',
    'browser/console',
    'browser/console-attacks',
    'browser/docs-page',
  ],
};

export const testFile = (name: string): string => `test/${name}.test.ts`;
