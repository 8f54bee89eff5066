import { useState } from 'react';
import type { ResponseFrom } from '../../client/api-client.ts';
import { useApi } from '../data/api.ts';
import { CommandLine } from '../parts/copyable.tsx';
import { TextField } from '../parts/form.tsx';
import { type Columns, PagedTable, usePages } from '../parts/paged-table.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { Problem } from '../parts/problem.tsx';
import { Section } from '../parts/section.tsx';
import { TextDiff } from '../parts/text-diff.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { sourceOf } from './source-text.tsx';
import { WorkflowArea } from './workflow-area.tsx';

type Version = ResponseFrom<'GET /api/v1/workflows/{name}'>['versions'][number];

export default function WorkflowVersionsPage({ name }: { name: string }) {
  return (
    <WorkflowArea name={name} part="All versions, the newest first. Runs keep the version that they started with.">
      {({ version }) => (
        <>
          <Compare key={version} name={name} newest={version} />
          <Section title="Versions">
            <Versions name={name} />
          </Section>
        </>
      )}
    </WorkflowArea>
  );
}

/** What changed between two versions; by default, with the newest one. */
function Compare({ name, newest }: { name: string; newest: number }) {
  const [from, setFrom] = useState(String(Math.max(1, newest - 1)));
  const [to, setTo] = useState(String(newest));
  const [before, after] = [useVersion(name, from, newest), useVersion(name, to, newest)];
  const error = before.error ?? after.error;
  if (newest === 1) return <p className="secondary">There is one version, so there is nothing to compare.</p>;
  return (
    <Section title={`From version ${from || '…'} to version ${to || '…'}`}>
      <div className="form-columns">
        <TextField label="From version" type="number" value={from} onChange={setFrom} />
        <TextField label="To version" type="number" value={to} onChange={setTo} />
      </div>
      {error && <Problem error={error} />}
      {before.data && after.data && (
        <TextDiff label="Changes" before={sourceOf(before.data)} after={sourceOf(after.data)} />
      )}
      <div className="on-command-line">
        On the command line: <CommandLine command={`countersign workflow diff ${name} --from ${from} --to ${to}`} />
      </div>
    </Section>
  );
}

function useVersion(name: string, version: string, newest: number) {
  const enabled = /^\d+$/.test(version) && Number(version) >= 1 && Number(version) <= newest;
  return useApi('GET /api/v1/workflows/{name}/versions/{version}', { params: { name, version } }, { enabled });
}

function Versions({ name }: { name: string }) {
  const pages = usePages(name);
  const list = useApi('GET /api/v1/workflows/{name}', { params: { name }, query: pages.query });
  return (
    <PagedTable
      label="All versions"
      list={list}
      items={list.data?.versions ?? []}
      columns={COLUMNS}
      trackBy={({ version }) => String(version)}
      pages={pages}
      empty={null}
    />
  );
}

const COLUMNS: Columns<Version> = [
  { id: 'version', header: 'Version', isRowHeader: true, minWidth: 80, cell: ({ version }) => version },
  {
    id: 'at',
    header: 'Published',
    minWidth: 120,
    cell: ({ publishedAt }) => (publishedAt === null ? '–' : <PointInTime at={publishedAt} />),
  },
  { id: 'by', header: 'By', minWidth: 120, cell: ({ author }) => <UntrustedText text={author ?? '–'} /> },
  { id: 'steps', header: 'Steps', minWidth: 70, cell: ({ steps }) => steps },
];
