import type { ReactNode } from 'react';
import { Page } from '../parts/page.tsx';
import { SubPages } from '../parts/section.tsx';

const PAGES = [
  { path: '/settings', text: 'Limits and channels' },
  { path: '/settings/people', text: 'People' },
  { path: '/settings/connections', text: 'Connections' },
  { path: '/settings/webhooks', text: 'Webhooks' },
  { path: '/settings/keys', text: 'API keys' },
  { path: '/settings/changes', text: 'History of changes' },
];

/** The frame of all pages of the settings. */
export function SettingsArea({ title, description, actions, children }: AreaProps) {
  return (
    <>
      <SubPages label="Settings" pages={PAGES} />
      <Page title={title} description={description} actions={actions}>
        {children}
      </Page>
    </>
  );
}

interface AreaProps {
  title: string;
  description?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}
