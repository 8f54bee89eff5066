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
    'cli/runs/runs',
    'cli/webhook/webhook-send',
    'local/runs/bulk',
    'local/mcp',
    'local/runs/request-counts',
    'local/runs/burst',
    'local/runs/stop-writes',
  ],
  'local/host-group-6': ['local/sessions', 'local/agents-api', 'local/digest', 'local/access/canaries'],
  'browser/host-group-3': [
    // First: an objective counts runs that failed in the last six hours, also those of other files.
    'browser/dashboard',
    'browser/console-pages',
    'browser/console-sessions',
    'browser/flags',
  ],
  'browser/host-group-4': ['browser/console-live', 'browser/console', 'browser/console-attacks', 'browser/docs-page'],
};

export const testFile = (name: string): string => `test/${name}.test.ts`;
