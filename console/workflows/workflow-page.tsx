import { Link } from 'wouter';
import { useApi } from '../data/api.ts';
import { CommandLine } from '../parts/copyable.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { Facts, Section } from '../parts/section.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { SourceText } from './source-text.tsx';
import { WorkflowArea } from './workflow-area.tsx';

export default function WorkflowPage({ name }: { name: string }) {
  return (
    <WorkflowArea name={name} part="The newest version.">
      {(newest) => (
        <>
          <Facts
            facts={[
              ['What it does', <UntrustedText key="what" text={newest.description ?? '–'} max={600} />],
              ['Newest version', `${newest.version}, ${newest.steps === 1 ? '1 step' : `${newest.steps} steps`}`],
              ['Published by', <UntrustedText key="by" text={newest.author ?? '–'} />],
              ['Published', newest.publishedAt === null ? '–' : <PointInTime key="at" at={newest.publishedAt} />],
              ['Automations that run it', <UsedBy key="used" name={name} newest={newest.version} />],
            ]}
          />
          <Section title="File">
            <SourceText version={newest} />
            <div className="on-command-line">
              On the command line: <CommandLine command={`countersign workflow show ${name}`} />
            </div>
          </Section>
        </>
      )}
    </WorkflowArea>
  );
}

function UsedBy({ name, newest }: { name: string; newest: number }) {
  const { data } = useApi('GET /api/v1/automations', { query: { limit: 100 } });
  const using = (data?.automations ?? []).filter(({ workflow }) => workflow.name === name);
  if (using.length === 0) return <>None. Only people and the API start it.</>;
  return (
    <ul className="plain-list">
      {using.map(({ name: automation, workflow, enabled }) => (
        <li key={automation}>
          <Link href={`/automations/${encodeURIComponent(automation)}`}>
            <UntrustedText text={automation} />
          </Link>
          {!enabled && ' (disabled)'}
          {workflow.version !== newest && `: version ${workflow.version}, not the newest`}
        </li>
      ))}
    </ul>
  );
}
