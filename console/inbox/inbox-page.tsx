import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { ResponseFrom } from '../../client/api-client.ts';
import { useInbox } from '../data/inbox.ts';
import { Page } from '../parts/page.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { EmptyState, Problem } from '../parts/problem.tsx';
import { RunStatusText, type RunSummary } from '../parts/run-status.tsx';
import { Subject } from '../parts/subject.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { useRowKeys } from '../shell/keyboard.ts';
import { SampleEvents } from './sample-events.tsx';

type Approval = ResponseFrom<'GET /api/v1/approvals'>['approvals'][number];

/** What waits for the signed-in person. */
export default function InboxPage() {
  const { approvals, assigned, needed } = useInbox();
  const pending = approvals.data?.approvals ?? [];
  const toResolve = needed.data?.runs ?? [];
  const own = (assigned.data?.runs ?? []).filter(({ runId }) => !toResolve.some((run) => run.runId === runId));
  useRowKeys('.inbox-item');
  const error = approvals.error ?? assigned.error ?? needed.error;
  const isEmpty =
    !approvals.isPending &&
    !assigned.isPending &&
    !needed.isPending &&
    pending.length + toResolve.length + own.length === 0;
  return (
    <Page title="Inbox" description="What waits for you, live.">
      {error && <Problem error={error} retry={() => approvals.refetch()} />}
      {isEmpty && (
        <EmptyState title="Nothing waits for you" action={<SampleEvents />}>
          Approvals that you may decide, runs that need a person, and runs assigned to you appear here.
        </EmptyState>
      )}
      <Section title="Approvals you may decide" count={pending.length} hasMore={approvals.data?.nextCursor !== null}>
        {pending.map((approval) => (
          <ApprovalItem key={approval.approvalId} approval={approval} />
        ))}
      </Section>
      <Section title="Runs that need a person" count={toResolve.length}>
        {toResolve.map((run) => (
          <RunItem key={run.runId} run={run} />
        ))}
      </Section>
      <Section title="Runs assigned to you" count={own.length}>
        {own.map((run) => (
          <RunItem key={run.runId} run={run} />
        ))}
      </Section>
      {!isEmpty && <SampleEvents />}
    </Page>
  );
}

interface SectionProps {
  title: string;
  count: number;
  hasMore?: boolean;
  children: ReactNode;
}

function Section({ title, count, hasMore = false, children }: SectionProps) {
  if (count === 0) return null;
  return (
    <Container
      header={
        <Header variant="h2" counter={`(${count}${hasMore ? '+' : ''})`}>
          {title}
        </Header>
      }
    >
      <ul className="inbox-list">{children}</ul>
    </Container>
  );
}

function ApprovalItem({ approval }: { approval: Approval }) {
  const { approvalId, title, subject, action, automation, stepId, message, requestedAt, expiresAt, escalatedAt } =
    approval;
  return (
    <li className="inbox-item">
      <Link href={`/approvals/${encodeURIComponent(approvalId)}`}>
        <UntrustedText text={title} max={120} />
      </Link>
      {message !== undefined && (
        <p>
          <UntrustedText text={message} max={200} />
        </p>
      )}
      <div className="facts">
        {escalatedAt !== undefined && <strong className="overdue">Overdue</strong>}
        {subject !== undefined && <Subject subject={subject} />}
        <span>
          <UntrustedText text={action?.tool ?? stepId} max={60} />
          {action && ` in ${action.environment}`}
        </span>
        <span>
          by <UntrustedText text={automation} max={60} />, requested <PointInTime at={requestedAt} />, expires{' '}
          <PointInTime at={expiresAt} />
        </span>
      </div>
    </li>
  );
}

function RunItem({ run }: { run: RunSummary }) {
  const { runId, title, subject, automation, status, error, updatedAt } = run;
  return (
    <li className="inbox-item">
      <Link href={`/runs/${encodeURIComponent(runId)}`}>
        <UntrustedText text={title ?? subject ?? automation} max={120} />
      </Link>
      <div className="facts">
        <RunStatusText status={status} />
        {error && <span>{error.code}</span>}
        <span>
          <UntrustedText text={automation} max={60} />, changed <PointInTime at={updatedAt} />
        </span>
      </div>
    </li>
  );
}
