import Header from '@cloudscape-design/components/header';
import { type ReactNode, useEffect } from 'react';
import { useInboxCount } from '../data/inbox.ts';
import { safeText } from './untrusted-text.tsx';

const TITLE_MAX_CHARACTERS = 80;

interface PageProps {
  /** For the tab and the heading. */
  title: string;
  /** Instead of the title as the heading. */
  heading?: ReactNode;
  description?: ReactNode;
  counter?: string;
  actions?: ReactNode;
  children: ReactNode;
}

/** The frame of every page: its heading, and the title of the tab with the number of things that wait for the person. */
export function Page({ title, heading, description, counter, actions, children }: PageProps) {
  const waiting = useInboxCount();
  useEffect(() => {
    const count = waiting > 0 ? `(${waiting}) ` : '';
    document.title = `${count}${safeText(title, TITLE_MAX_CHARACTERS)} · Countersign`;
  }, [title, waiting]);
  return (
    <div className="page">
      <Header variant="h1" description={description} counter={counter} actions={actions}>
        {heading ?? safeText(title)}
      </Header>
      {children}
    </div>
  );
}
