import Alert from '@cloudscape-design/components/alert';
import Button from '@cloudscape-design/components/button';
import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import { useEffect, useState } from 'react';
import { Link } from 'wouter';
import type { ResponseFrom } from '../../client/api-client.ts';
import { sentence } from '../data/api.ts';
import { useLive } from '../data/live.ts';
import { Copyable } from '../parts/copyable.tsx';
import { Page } from '../parts/page.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { Problem } from '../parts/problem.tsx';
import { Subject } from '../parts/subject.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { Changes } from './changes.tsx';
import { Decide } from './decide.tsx';
import { Votes, WhoDecides } from './who-decides.tsx';

export type ShownApproval = ResponseFrom<'GET /api/v1/approvals/{id}'>;

const OPEN = ['requested', 'notified'];
export const isOpen = ({ status }: ShownApproval): boolean => OPEN.includes(status);

/** Everything a person needs to decide, in the order in which they ask: what, why, who, and what otherwise. */
export default function ApprovalPage({ id }: { id: string }) {
  const { data: now, error, refetch } = useLive('GET /api/v1/approvals/{id}', { params: { id } }, { topic: 'tenant' });
  // What the person reads is what they decide: a changed write never replaces it silently.
  const [seen, setSeen] = useState<ShownApproval>();
  const isCurrent = seen === undefined || seen.actionHash === now?.actionHash;
  useEffect(() => {
    if (now && isCurrent) setSeen(now);
  }, [now, isCurrent]);
  if (error && !now) {
    return (
      <Page title="Approval">
        <Problem error={error} retry={() => refetch()} />
      </Page>
    );
  }
  if (!now) return <p className="starting">Loading …</p>;
  const approval = isCurrent ? now : seen;
  const hasChanged = !isCurrent;
  const showNow = () => setSeen(now);
  // Who has changed the write knows the new version.
  const onDecided = async (hasEdited: boolean) => {
    const { data } = await refetch();
    if (hasEdited) setSeen(data);
  };
  return <ApprovalView approval={approval} hasChanged={hasChanged} onShowNow={showNow} onDecided={onDecided} />;
}

interface ViewProps {
  approval: ShownApproval;
  hasChanged: boolean;
  onShowNow: () => void;
  onDecided: (hasEdited: boolean) => void;
}

function ApprovalView({ approval, hasChanged, onShowNow, onDecided }: ViewProps) {
  const { title, forDecision, runId, approvalId, actionHash, warning, message, edits } = approval;
  const { does, why, undo, withoutDecision } = forDecision;
  const open = isOpen(approval);
  return (
    <Page title={title} heading={<UntrustedText text={title} max={160} />} description={<About approval={approval} />}>
      {hasChanged && (
        <Alert
          type="warning"
          header="This write has changed since you opened the page"
          action={<Button onClick={onShowNow}>Show the new version</Button>}
        >
          You cannot decide on the version below any more.
        </Alert>
      )}
      {warning !== undefined && open && (
        <Alert type="warning" header="Too few people can approve this">
          <UntrustedText text={warning} lines="many" max={1_000} />
        </Alert>
      )}
      <div className="decision-columns">
        <div className="page">
          <Container header={<Header variant="h2">{open ? 'What will change' : 'What was asked'}</Header>}>
            {does !== null && (
              <p className="lead">
                <UntrustedText text={does} /> {undo}
              </p>
            )}
            {message !== undefined && (
              <blockquote>
                <UntrustedText text={message} lines="many" max={2_000} />
                <span className="secondary">
                  Message of the workflow’s author{edits.length > 0 && ', from before the edit'}
                </span>
              </blockquote>
            )}
            <Changes approval={approval} />
          </Container>
          <Container header={<Header variant="h2">Why approval is required</Header>}>
            <ul className="plain-list">
              {why.map((reason, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: reasons do not move
                <li key={index}>
                  <UntrustedText text={sentence(reason)} lines="many" max={1_000} />
                </li>
              ))}
            </ul>
          </Container>
          {open && (
            <Container header={<Header variant="h2">Without a decision</Header>}>
              <p>{withoutDecision}</p>
              <p>
                It expires <PointInTime at={approval.expiresAt} />; others are notified{' '}
                <PointInTime at={approval.slaAt} />.
              </p>
            </Container>
          )}
        </div>
        <div className="page">
          <Decide approval={approval} hasChanged={hasChanged} onDecided={onDecided} />
          <WhoDecides approval={approval} />
          <Votes approval={approval} />
          <Container header={<Header variant="h2">Identifiers</Header>}>
            <dl className="id-list">
              <dt>Run</dt>
              <dd>
                <Link href={`/runs/${encodeURIComponent(runId)}`}>Open the run</Link>{' '}
                <Copyable text={runId} label="the run" />
              </dd>
              <dt>Approval</dt>
              <dd>
                <Copyable text={approvalId} label="the approval" />
              </dd>
              {approval.action && (
                <>
                  <dt>Target</dt>
                  <dd>
                    <Copyable text={approval.action.target} label="the target" />
                  </dd>
                </>
              )}
              <dt>Hash of the write</dt>
              <dd>
                <Copyable text={actionHash} label="the hash of the write" />
              </dd>
              <dt>On the command line</dt>
              <dd>
                <Copyable text={`npx countersign approvals show ${approvalId}`} label="the command" />
              </dd>
            </dl>
          </Container>
        </div>
      </div>
    </Page>
  );
}

/** What a person recognises first. The identifiers have the target. */
function About({ approval }: { approval: ShownApproval }) {
  const { action, automation, workflow, stepId, subject, forDecision } = approval;
  return (
    <>
      <strong>{forDecision.heading}</strong>
      {action && ` in ${action.environment}`}
      {subject !== undefined && (
        <>
          {' · '}
          <Subject subject={subject} />
        </>
      )}
      {' · by '}
      <UntrustedText text={automation} max={60} />, workflow <UntrustedText text={workflow.name} max={60} /> v
      {workflow.version}, step <UntrustedText text={stepId} max={60} />
    </>
  );
}
