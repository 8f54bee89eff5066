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

/** READ FIRST. Every page of the console, in the order of the navigation. */
export const PAGES: readonly PageDefinition[] = [
  page('/', () => import('./inbox/inbox-page.tsx'), 'Inbox'),
  page('/approvals/:id', () => import('./approval/approval-page.tsx')),
  page('/runs', () => import('./runs/runs-page.tsx'), 'Runs'),
  page('/runs/:id', () => import('./run/run-page.tsx')),
];
