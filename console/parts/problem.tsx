import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { isNotFound, problemText } from '../data/api.ts';
import { UntrustedText } from './untrusted-text.tsx';

/** What went wrong, in words, and a button that tries again. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  if (isNotFound(error)) {
    return (
      <EmptyState title="There is nothing at this address" action={<Link href="/">Go to your inbox</Link>}>
        <UntrustedText text={problemText(error)} lines="many" /> It may have been deleted, or belong to another tenant.
      </EmptyState>
    );
  }
  return (
    <Alert type="error" header="This could not be loaded" action={retry && <Button onClick={retry}>Try again</Button>}>
      <UntrustedText text={problemText(error)} lines="many" />
    </Alert>
  );
}

/** Says what to do where a list is empty. */
export function EmptyState({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="empty-state">
      <Box variant="h3" tagOverride="p">
        {title}
      </Box>
      {children !== undefined && <Box color="text-body-secondary">{children}</Box>}
      {action !== undefined && <div className="empty-action">{action}</div>}
    </div>
  );
}
