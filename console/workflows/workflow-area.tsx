import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { ResponseFrom } from '../../client/api-client.ts';
import { isNotFound, useApi } from '../data/api.ts';
import { Page } from '../parts/page.tsx';
import { EmptyState, Problem } from '../parts/problem.tsx';
import { SubPages } from '../parts/section.tsx';
import { safeText, UntrustedText } from '../parts/untrusted-text.tsx';

export type WorkflowVersion = ResponseFrom<'GET /api/v1/workflows/{name}/versions/{version}'>;

interface AreaProps {
  name: string;
  /** Of the tab. */
  part: string;
  children: (newest: WorkflowVersion) => ReactNode;
}

/** The frame of all pages of a workflow. They get its newest version. */
export function WorkflowArea({ name, part, children }: AreaProps) {
  const path = `/workflows/${encodeURIComponent(name)}`;
  const list = useApi('GET /api/v1/workflows/{name}', { params: { name }, query: { limit: 1 } });
  const newest = list.data?.versions[0]?.version;
  const version = useApi(
    'GET /api/v1/workflows/{name}/versions/{version}',
    { params: { name, version: String(newest) } },
    { enabled: newest !== undefined },
  );
  const error = list.error ?? version.error;
  if (isNotFound(list.error)) {
    return (
      <Page title="Workflow">
        <EmptyState title="There is no such workflow" action={<Link href="/workflows">Show all workflows</Link>}>
          No workflow has the name <UntrustedText text={name} max={80} />.
        </EmptyState>
      </Page>
    );
  }
  return (
    <>
      <SubPages
        label={`Workflow ${safeText(name)}`}
        pages={[
          { path, text: 'Workflow' },
          { path: `${path}/edit`, text: 'Edit and simulate' },
          { path: `${path}/versions`, text: 'Versions' },
          { path: `${path}/run`, text: 'Run now' },
        ]}
      />
      <Page title={name} description={part}>
        {error && <Problem error={error} retry={() => list.refetch()} />}
        {!error && !version.data && 'Loading …'}
        {version.data && children(version.data)}
      </Page>
    </>
  );
}
