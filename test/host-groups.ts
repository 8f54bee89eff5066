/**
 * Test files that use one host, one after the other (`local/shared-host.ts`): the start of a host and of its threads takes longer
 * than most of their tests. In `npm test` these files run as the group. A file that is named on the command line runs alone.
 */
export const HOST_GROUPS: Record<string, readonly string[]> = {
  'local/host-group-1': ['local/key-lengths', 'local/crashes', 'local/control', 'local/api'],
  'local/host-group-2': [
    'local/rollback',
    'local/governed-writes',
    'local/webhooks',
    'local/many-webhooks',
    'local/lost-messages',
    'local/storm',
    'local/executions',
    'local/caps',
    'local/tools',
    'local/outbox',
  ],
  'local/host-group-5': [
    'cli/runs/runs',
    'cli/webhook/webhook-send',
    'local/bulk',
    'local/mcp',
    'local/request-counts',
    'local/burst',
    'local/stop-writes',
  ],
  'local/host-group-6': ['local/sessions', 'local/agents-api', 'local/digest', 'local/canaries'],
  'browser/host-group-3': ['browser/console-pages', 'browser/console-sessions', 'browser/flags', 'browser/dashboard'],
  'browser/host-group-4': ['browser/console-live', 'browser/console', 'browser/console-attacks', 'browser/docs-page'],
};

export const testFile = (name: string): string => `test/${name}.test.ts`;
