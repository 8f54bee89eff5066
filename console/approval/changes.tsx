import type { ReactNode } from 'react';
import { UNREAD } from '../../lambdas/approval/texts/approval-words.ts';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import type { ShownApproval } from './approval-page.tsx';

type Field = ShownApproval['forDecision']['written'][number];

/** Before → after of every field, with display names. */
export function Changes({ approval }: { approval: ShownApproval }) {
  const { action, unread, phase, forDecision } = approval;
  const { written, follows } = forDecision;
  if (!action) return <p>If it is approved, the run continues with the next step. This step writes nothing itself.</p>;
  return (
    <>
      <FieldTable caption={action.effect === 'read' ? 'What is requested' : 'What is written'} fields={written} />
      {follows.length > 0 && <FieldTable caption="What that changes at the target" fields={follows} />}
      {unread !== undefined && (
        <p>
          {UNREAD}
          <UntrustedText text={unread} />
        </p>
      )}
      <p className="secondary">
        Risk {action.risk}, blast radius {action.blastRadius}
        {action.destructive && ', destructive'}.
      </p>
      {phase && <Phase phase={phase} />}
    </>
  );
}

function FieldTable({ caption, fields }: { caption: string; fields: readonly Field[] }) {
  if (fields.length === 0) return <p>No fields.</p>;
  // Nothing to compare with: the write creates something, or a read failed, which is said below.
  const hasBefore = fields.some(({ from }) => from !== undefined);
  return (
    <div className="scroll-x">
      <table className="changes">
        <caption>{caption}</caption>
        <thead>
          <tr>
            <th scope="col">Field</th>
            {hasBefore && <th scope="col">Now</th>}
            <th scope="col">{hasBefore ? 'Then' : 'Value'}</th>
          </tr>
        </thead>
        <tbody>
          {fields.map(({ name, from, to }) => (
            <tr key={name} className={from !== undefined && from === to ? 'unchanged' : ''}>
              <th scope="row">
                <UntrustedText text={fieldLabel(name)} max={80} />
                {fieldLabel(name) !== name && (
                  <code className="secondary">
                    <UntrustedText text={name} max={80} />
                  </code>
                )}
              </th>
              {hasBefore && <td>{from === undefined ? <Muted>not read</Muted> : <Value text={from} />}</td>}
              <td className="then">
                <Value text={to} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** `assignment_group` → `Assignment group`, `timeoutSeconds` → `Timeout seconds`. The name itself follows it. */
const fieldLabel = (name: string): string => {
  if (!/^[a-z]+(_[a-z]+|[A-Z][a-z]+)*$/.test(name)) return name;
  const words = name.replaceAll(/_|(?=[A-Z])/g, ' ').toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
};

const Muted = ({ children }: { children: ReactNode }) => <em className="secondary">{children}</em>;

function Value({ text }: { text: string | null }) {
  if (text === '""') return <Muted>empty</Muted>;
  if (text === null) return <Muted>not set</Muted>;
  // `Network Operations (19bba1f6…)`: people recognise the name, so the id is less prominent.
  const [, name, id] = /^(.{1,200}) (\([0-9a-zA-Z_-]{16,64}\))$/.exec(text) ?? [];
  if (name === undefined || id === undefined) return <UntrustedText text={text} lines="many" max={2_000} />;
  return (
    <>
      <UntrustedText text={name} />{' '}
      <span className="id-of-name">
        <UntrustedText text={id} />
      </span>
    </>
  );
}

function Phase({ phase }: { phase: NonNullable<ShownApproval['phase']> }) {
  return (
    <>
      {phase.writes.length > 0 && (
        <>
          <h3>
            {phase.writes.length} more {phase.writes.length === 1 ? 'write' : 'writes'} of the phase{' '}
            <UntrustedText text={phase.name} />, approved together with it
          </h3>
          <ul className="plain-list">
            {phase.writes.map((write) => (
              <li key={write.stepId}>
                <b>
                  <UntrustedText text={write.stepId} max={60} />
                </b>
                : {write.action.tool} at <UntrustedText text={write.action.target} max={120} />
                <FieldTable
                  caption={`Step ${write.stepId}`}
                  fields={Object.entries(write.action.fields).map(([name, value]) => ({
                    name,
                    to: typeof value === 'string' ? value : JSON.stringify(value, null, 2),
                  }))}
                />
              </li>
            ))}
          </ul>
        </>
      )}
      {phase.askedLater.map(({ stepId, tool }) => (
        <p key={stepId}>
          Not covered, needs its own approval: <UntrustedText text={stepId} max={60} /> ({tool})
        </p>
      ))}
    </>
  );
}
