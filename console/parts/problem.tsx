import Alert from '@cloudscape-design/components/alert';
import Box from '@cloudscape-design/components/box';
import Button from '@cloudscape-design/components/button';
import type { ReactNode } from 'react';
import { isNotFound, problemText } from '../data/api.ts';
import { UntrustedText } from './untrusted-text.tsx';

/** What went wrong, in words, and a button that tries again. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  return (
    <Alert
      type="error"
      header={isNotFound(error) ? 'There is nothing at this address' : 'This could not be loaded'}
      action={retry && <Button onClick={retry}>Try again</Button>}
    >
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
