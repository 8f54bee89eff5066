import Container from '@cloudscape-design/components/container';
import Header from '@cloudscape-design/components/header';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { useMe } from '../data/me.ts';
import { PointInTime } from '../parts/point-in-time.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { isOpen, type ShownApproval } from './approval-page.tsx';

/** Who may decide, who may not, and why. */
export function WhoDecides({ approval }: { approval: ShownApproval }) {
  const { forDecision, requirement } = approval;
  const may = forDecision.people.filter((person) => person.may);
  const mayNot = forDecision.people.filter((person) => !person.may);
  return (
    <Container header={<Header variant="h2">{isOpen(approval) ? 'Who decides' : 'Who could decide'}</Header>}>
      <p>
        <UntrustedText text={forDecision.requirement} max={600} />
        {requirement.quorum > 1 && ` ${forDecision.approvedSoFar} of ${requirement.quorum} have approved.`}
      </p>
      {may.length > 0 && <People title="May decide" people={may} />}
      {mayNot.length > 0 && <People title="May not decide" people={mayNot} />}
    </Container>
  );
}

function People({ title, people }: { title: string; people: ShownApproval['forDecision']['people'] }) {
  const { data: me } = useMe();
  return (
    <>
      <h3>{title}</h3>
      <ul className="plain-list">
        {people.map(({ person, name, why }) => (
          <li key={person}>
            <UntrustedText text={name} max={80} />
            {person === me?.person && ' (you)'}
            {why !== undefined && (
              <span className="secondary">
                {': '}
                <UntrustedText text={why} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

/** What people decided and changed so far. */
export function Votes({ approval: { votes, edits, forDecision } }: { approval: ShownApproval }) {
  if (votes.length + edits.length === 0) return null;
  const nameOf = (id: string) => forDecision.people.find(({ person }) => person === id)?.name ?? id;
  return (
    <Container header={<Header variant="h2">Decisions</Header>}>
      <ul className="plain-list">
        {edits.map(({ person, at, changes }) => (
          <li key={`${person}${at}`}>
            <UntrustedText text={nameOf(person)} max={80} /> changed{' '}
            <UntrustedText text={changes.map(({ field }) => field).join(', ')} max={120} />, <PointInTime at={at} />.
            Earlier votes no longer count.
          </li>
        ))}
        {votes.map(({ person, decision, via, at, reason, onBehalfOf }) => (
          <li key={`${person}${at}`}>
            <StatusIndicator type={decision === 'approve' ? 'success' : 'error'}>
              <UntrustedText text={nameOf(person)} max={80} /> {decision === 'approve' ? 'approved' : 'rejected'}
            </StatusIndicator>{' '}
            {via === 'api' ? 'through the API' : via === 'slack' ? 'in Slack' : 'in the console'},{' '}
            <PointInTime at={at} />
            {onBehalfOf !== undefined && (
              <>
                , on behalf of <UntrustedText text={nameOf(onBehalfOf)} max={80} />
              </>
            )}
            {reason !== undefined && (
              <blockquote>
                <UntrustedText text={reason} lines="many" max={2_000} />
              </blockquote>
            )}
          </li>
        ))}
      </ul>
    </Container>
  );
}
