import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { useApi } from '../data/api.ts';
import { CommandLine } from '../parts/copyable.tsx';
import { Problem } from '../parts/problem.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';

/** What is missing or wrong in the setup of the tenant, and how to fix it. */
export function Findings() {
  const { data, error, refetch } = useApi('GET /api/v1/doctor', {});
  if (error) return <Problem error={error} retry={refetch} />;
  if (!data) return <p>Checking …</p>;
  const { findings, stage, kind, version } = data;
  return (
    <>
      <p className="secondary">
        Stage <UntrustedText text={stage} /> ({kind}), version {version}. The same check:{' '}
        <CommandLine command="countersign doctor" />
      </p>
      {findings.length === 0 && <StatusIndicator type="success">Nothing is missing or wrong</StatusIndicator>}
      <ul className="plain-list findings">
        {findings.map(({ level, subject, problem, fix }) => (
          <li key={`${subject} ${problem}`}>
            <StatusIndicator type={level}>
              <UntrustedText text={subject} />
            </StatusIndicator>
            : <UntrustedText text={problem} max={1_000} />
            <div className="secondary">
              Fix: <UntrustedText text={fix} max={1_000} />
            </div>
          </li>
        ))}
      </ul>
    </>
  );
}
