import Alert from '@cloudscape-design/components/alert';
import Button from '@cloudscape-design/components/button';
import ButtonDropdown from '@cloudscape-design/components/button-dropdown';
import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { RequestFor, ResponseFrom } from '../../client/api-client.ts';
import { call, problemText } from '../data/api.ts';
import { useRight } from '../data/me.ts';
import { TextArea } from '../parts/form.tsx';
import { RUN_STATUSES } from '../parts/run-status.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { titleOf } from './run-columns.tsx';
import type { RunQuery } from './run-filter.ts';

type Bulk = ResponseFrom<'POST /api/v1/runs/bulk'>;
type Preview = Extract<Bulk, { kind: 'preview' }>;
type Result = Extract<Bulk, { kind: 'execution' }>['results'][number];
type Action = Preview['action'];
type PreviewBody = Extract<RequestFor<'POST /api/v1/runs/bulk'>['body'], { action: unknown }>;

const ACTIONS: Record<Action, string> = {
  cancel: 'Cancel these runs',
  retry: 'Retry their failed steps',
  rerun: 'Run them again',
  resolve: 'Resolve them as failed',
};

interface Chosen {
  action: Action;
  reason: string;
  preview?: Preview;
  processed?: number;
  notChanged?: Result[];
  isFinished?: boolean;
}

/** Chooses what happens to all runs that match the filter. Nothing happens before the preview is confirmed. */
export function BulkActions({ filter }: { filter: RunQuery }) {
  const mayControl = useRight('runs:control');
  const [chosen, setChosen] = useState<Chosen>();
  const isFiltered = Object.keys(filter).length > 0;
  if (chosen) return <BulkForm filter={filter} chosen={chosen} onChange={setChosen} />;
  return (
    <ButtonDropdown
      disabled={!mayControl || !isFiltered}
      disabledReason={mayControl ? 'Filter the runs first' : 'Your role lacks the right runs:control'}
      items={Object.entries(ACTIONS).map(([id, text]) => ({ id, text }))}
      onItemClick={({ detail }) => setChosen({ action: detail.id as Action, reason: '' })}
    >
      Act on all that match
    </ButtonDropdown>
  );
}

interface BulkFormProps {
  filter: RunQuery;
  chosen: Chosen;
  onChange: (chosen: Chosen | undefined) => void;
}

function BulkForm({ filter, chosen, onChange }: BulkFormProps) {
  const { action, reason, preview, processed, notChanged = [], isFinished = false } = chosen;
  const [problem, setProblem] = useState<string>();
  const [isSending, setIsSending] = useState(false);
  const queries = useQueryClient();
  const needsReason = action === 'resolve';
  const attempt = async (work: () => Promise<void>) => {
    setIsSending(true);
    setProblem(undefined);
    await work().catch((error: unknown) => setProblem(problemText(error)));
    setIsSending(false);
  };
  const showPreview = () =>
    attempt(async () => {
      const given = reason.trim();
      const options = {
        ...(given !== '' && (action === 'cancel' || action === 'resolve') && { reason: given }),
        ...(action === 'resolve' && { outcome: 'failed' }),
      };
      const body: PreviewBody = { action, filter: filter as PreviewBody['filter'], options };
      const found = await call('POST /api/v1/runs/bulk', { body });
      if (found.kind === 'preview') onChange({ ...chosen, preview: found });
    });
  const execute = (token: string) =>
    attempt(async () => {
      const failed: Result[] = [];
      for (let isOver = false; !isOver; ) {
        const done = await call('POST /api/v1/runs/bulk', { body: { token } });
        if (done.kind !== 'execution') return;
        failed.push(...done.results.filter(({ outcome }) => outcome !== 'done'));
        isOver = done.finished;
        onChange({ ...chosen, processed: done.processed, notChanged: [...failed], isFinished: isOver });
      }
      await queries.invalidateQueries();
    });
  return (
    <Container
      header={
        <Header variant="h2" actions={<Button onClick={() => onChange(undefined)}>Close</Button>}>
          {ACTIONS[action]}
        </Header>
      }
    >
      <div className="decide">
        {problem !== undefined && (
          <Alert type="error">
            <UntrustedText text={problem} lines="many" max={1_000} />
          </Alert>
        )}
        {!preview && (
          <>
            {(action === 'cancel' || action === 'resolve') && (
              <TextArea
                label="Reason"
                optional={!needsReason}
                value={reason}
                rows={2}
                onChange={(text) => onChange({ ...chosen, reason: text })}
              />
            )}
            <div>
              <Button
                variant="primary"
                loading={isSending}
                disabled={needsReason && reason.trim() === ''}
                disabledReason="Give a reason"
                onClick={showPreview}
              >
                Show what would happen
              </Button>
            </div>
          </>
        )}
        {preview && processed === undefined && (
          <>
            <p>
              <b>{preview.total} runs</b>:{' '}
              {preview.byStatus
                .map(({ status, count }) => `${count} ${RUN_STATUSES[status].text.toLowerCase()}`)
                .join(', ')}
              .{preview.leftOut > 0 && ` ${preview.leftOut} more match, and cannot take this action in their status.`}
              {!preview.complete && ' More runs match than one job takes.'}
            </p>
            <ul className="plain-list">
              {preview.sample.slice(0, 5).map((run) => (
                <li key={run.runId}>
                  <UntrustedText text={titleOf(run)} max={100} />
                </li>
              ))}
            </ul>
            <div className="buttons">
              <Button
                variant="primary"
                loading={isSending}
                disabled={preview.total === 0}
                disabledReason="No run matches"
                onClick={() => execute(preview.token)}
              >
                {`${ACTIONS[action]} (${preview.total})`}
              </Button>
            </div>
          </>
        )}
        {processed !== undefined && (
          <>
            <p role="status">
              {processed} of {preview?.total} processed{isFinished ? ', finished' : ' …'}; {notChanged.length} not
              changed.
            </p>
            <ul className="plain-list">
              {notChanged.slice(0, 50).map(({ runId, reason: why }) => (
                <li key={runId}>
                  <Link href={`/runs/${encodeURIComponent(runId)}`}>{runId}</Link>:{' '}
                  <UntrustedText text={why ?? ''} max={200} />
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </Container>
  );
}
