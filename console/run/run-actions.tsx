import Alert from '@cloudscape-design/components/alert';
import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { problemText } from '../data/api.ts';
import type { RunDetail, WholeRun } from '../data/run.ts';
import { CommandLine } from '../parts/copyable.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { hasEnded } from '../parts/run-status.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { notify } from '../shell/notices.tsx';
import { ActionForm } from './action-form.tsx';
import { LABELS, performAction, type RunAction } from './perform-action.ts';

/** These ask before they act. */
const ASKS: readonly RunAction['action'][] = ['signal', 'cancel', 'rollback', 'resolve', 'pause'];

/** The right pane: what can be done now, and what comes next. */
export function RunActions({ whole, onChanged }: { whole: WholeRun; onChanged: () => void }) {
  const { run, steps } = whole;
  const waiting = steps.flatMap((step) => (step.status === 'waiting_approval' ? [step] : []));
  const next = hasEnded(run.status) ? [] : steps.filter(({ status }) => status === 'pending');
  return (
    <aside className="page" aria-label="Actions">
      {waiting.length > 0 && (
        <Container header={<Header variant="h2">Waits for a decision</Header>}>
          <ul className="plain-list">
            {waiting.map(({ id, approvalId, expiresAt }) => (
              <li key={approvalId}>
                <Link href={`/approvals/${encodeURIComponent(approvalId)}`}>
                  Decide on step <UntrustedText text={id} max={60} />
                </Link>
                <span className="secondary">
                  {' '}
                  expires <PointInTime at={expiresAt} />
                </span>
              </li>
            ))}
          </ul>
        </Container>
      )}
      <Container header={<Header variant="h2">What you can do</Header>}>
        <div className="actions">
          {run.actions.length === 0 && <p>Nothing needs to be done.</p>}
          {run.actions.map((action) => (
            <Action key={action.action} run={run} whole={whole} action={action} onChanged={onChanged} />
          ))}
        </div>
      </Container>
      {next.length > 0 && (
        <Container
          header={
            <Header variant="h2" counter={`(${next.length})`}>
              What comes next
            </Header>
          }
        >
          <ol className="plain-list">
            {next.slice(0, NEXT_SHOWN_MAX).map(({ index, id, tool }) => (
              <li key={index} value={index + 1}>
                <UntrustedText text={id} max={60} />{' '}
                <span className="secondary">
                  <UntrustedText text={tool} max={60} />
                </span>
              </li>
            ))}
          </ol>
          {next.length > NEXT_SHOWN_MAX && <p>… and {next.length - NEXT_SHOWN_MAX} more.</p>}
        </Container>
      )}
    </aside>
  );
}

const NEXT_SHOWN_MAX = 12;

interface ActionProps {
  run: RunDetail;
  whole: WholeRun;
  action: RunAction;
  onChanged: () => void;
}

function Action({ run, whole, action, onChanged }: ActionProps) {
  const [isAsking, setIsAsking] = useState(false);
  const [isSending, setIsSending] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [, go] = useLocation();
  const perform = async (body: object): Promise<boolean> => {
    setIsSending(true);
    setProblem(undefined);
    try {
      const started = await performAction(run.runId, action.action, body);
      notify('success', `${LABELS[action.action]}: done.`);
      setIsAsking(false);
      if (started !== undefined) go(`/runs/${started}`);
      onChanged();
      return true;
    } catch (error) {
      setProblem(problemText(error));
      return false;
    } finally {
      setIsSending(false);
    }
  };
  const begin = () => {
    if (ASKS.includes(action.action)) setIsAsking(true);
    else perform(action.action === 'retry' && action.about !== undefined ? { step: action.about } : {});
  };
  return (
    <section className="action">
      <Button
        disabled={!action.may || isAsking}
        disabledReason={action.why}
        loading={isSending && !isAsking}
        onClick={begin}
      >
        {LABELS[action.action]}
      </Button>
      <p>
        {action.effect}
        {action.why !== undefined && (
          <>
            {' '}
            <b>
              Not now: <UntrustedText text={action.why} max={200} />.
            </b>
          </>
        )}
      </p>
      {problem !== undefined && (
        <Alert type="error">
          <UntrustedText text={problem} lines="many" max={1_000} />
        </Alert>
      )}
      {isAsking && (
        <ActionForm
          whole={whole}
          action={action}
          label={LABELS[action.action]}
          isSending={isSending}
          onConfirm={perform}
          onBack={() => setIsAsking(false)}
        />
      )}
      <details className="folded">
        <summary>On the command line</summary>
        <CommandLine command={action.command} />
      </details>
    </section>
  );
}
