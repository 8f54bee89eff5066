import { type ComponentType, lazy } from 'react';

export interface PageDefinition {
  /** As wouter matches it: `/runs/:id`. */
  path: string;
  /** In the navigation; pages without a label are reached from others. */
  label?: string;
  /** Each page is a chunk of its own. Its parameters are its props: `/runs/:id` → `{ id: string }`. */
  Component: ComponentType<Record<string, string>>;
}

type Loaded = Promise<{ default: ComponentType<never> }>;
const page = (path: string, load: () => Loaded, label?: string): PageDefinition => ({
  path,
  ...(label !== undefined && { label }),
  Component: lazy(load as () => Promise<{ default: ComponentType<Record<string, string>> }>),
});

/** READ FIRST. Every page of the console, in the order of the navigation: after a page with a label come those of its section. */
export const PAGES: readonly PageDefinition[] = [
  page('/', () => import('./inbox/inbox-page.tsx'), 'Inbox'),
  page('/approvals/:id', () => import('./approval/approval-page.tsx')),
  page('/runs', () => import('./runs/runs-page.tsx'), 'Runs'),
  page('/runs/:id', () => import('./run/run-page.tsx')),
  page('/automations', () => import('./automations/automations-page.tsx'), 'Automations'),
  page('/automations/:name', () => import('./automations/automation-page.tsx')),
  page('/new-automation', () => import('./automations/new-automation-page.tsx')),
  page('/workflows', () => import('./workflows/workflows-page.tsx'), 'Workflows'),
  page('/workflows/:name', () => import('./workflows/workflow-page.tsx')),
  page('/workflows/:name/edit', () => import('./workflows/workflow-edit-page.tsx')),
  page('/workflows/:name/versions', () => import('./workflows/workflow-versions-page.tsx')),
  page('/workflows/:name/run', () => import('./workflows/workflow-run-page.tsx')),
  page('/new-workflow', () => import('./workflows/new-workflow-page.tsx')),
  page('/schedules', () => import('./schedules/schedules-page.tsx'), 'Schedules'),
  page('/schedules/:name', () => import('./schedules/schedule-page.tsx')),
  page('/new-schedule', () => import('./schedules/new-schedule-page.tsx')),
  page('/policies', () => import('./policies/policies-page.tsx'), 'Policies'),
  page('/evidence', () => import('./evidence/evidence-page.tsx'), 'Evidence'),
  page('/evidence/:id', () => import('./evidence/run-evidence-page.tsx')),
  page('/agents', () => import('./agents/agents-page.tsx'), 'Agents'),
  page('/agent-tokens', () => import('./agents/tokens-page.tsx')),
  page('/agents/:id', () => import('./agents/agent-page.tsx')),
  page('/settings', () => import('./settings/settings-page.tsx'), 'Settings'),
  page('/settings/people', () => import('./settings/people-page.tsx')),
  page('/settings/people/add', () => import('./settings/add-person-page.tsx')),
  page('/settings/people/:id', () => import('./settings/person-page.tsx')),
  page('/settings/connections', () => import('./settings/connections-page.tsx')),
  page('/settings/connections/:name', () => import('./settings/connection-page.tsx')),
  page('/settings/webhooks', () => import('./settings/webhooks-page.tsx')),
  page('/settings/keys', () => import('./settings/keys-page.tsx')),
  page('/settings/changes', () => import('./settings/changes-page.tsx')),
];

/** The page with a label to whose section an address belongs. */
export function sectionOf(address: string): string | undefined {
  const at = PAGES.findIndex(({ path }) => isAt(path, address));
  return PAGES.slice(0, at + 1).findLast(({ label }) => label !== undefined)?.path;
}

function isAt(pattern: string, address: string): boolean {
  const parts = address.split('/');
  const expected = pattern.split('/');
  return (
    parts.length === expected.length && expected.every((part, index) => part.startsWith(':') || part === parts[index])
  );
}
