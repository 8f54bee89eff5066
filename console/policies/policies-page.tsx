import Alert from '@cloudscape-design/components/alert';
import type { ResponseFrom } from '../../client/api-client.ts';
import { useApi } from '../data/api.ts';
import { Copyable } from '../parts/copyable.tsx';
import { Page } from '../parts/page.tsx';
import { Problem } from '../parts/problem.tsx';
import { Facts, Section } from '../parts/section.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { PendingChanges } from '../settings/pending-changes.tsx';
import { TryPolicies } from './try-policies.tsx';

export type Policies = ResponseFrom<'GET /api/v1/policies'>;

export default function PoliciesPage() {
  const { data, error, refetch } = useApi('GET /api/v1/policies', {});
  return (
    <Page
      title="Policies"
      description="Policies decide on every call: allow, require an approval, or deny. A call that no policy permits is denied."
    >
      {error && <Problem error={error} retry={refetch} />}
      <PendingChanges />
      {data && <InForce policies={data} />}
      {data?.engine === 'cedar' && <TryPolicies key={data.hash} inForce={data.files ?? {}} />}
    </Page>
  );
}

function InForce({
  policies: { engine, hash, problems = [], policies = [], files = {}, shipped },
}: {
  policies: Policies;
}) {
  return (
    <Section title="In force">
      {problems.length > 0 && (
        <Alert type="error" header="The policies are not valid, so every write is denied">
          <UntrustedText text={problems.join('\n')} lines="many" max={2_000} />
        </Alert>
      )}
      <Facts
        facts={[
          ['Language', engine === 'cedar' ? 'Cedar' : 'Rego, compiled. Change it on the command line.'],
          ['Policies of this tenant', <UntrustedText key="ids" text={policies.join(', ') || 'none'} max={2_000} />],
          ['Hash', hash === undefined ? '–' : <Copyable key="hash" text={hash} label="the hash of the policies" />],
        ]}
      />
      <h3>Of this tenant</h3>
      {Object.keys(files).length === 0 && (
        <p className="secondary">None: only the policies that ship with Countersign decide.</p>
      )}
      <Files files={files} />
      {shipped && (
        <>
          <h3>Shipped with Countersign</h3>
          <Files files={{ ...shipped.files, 'schema.cedarschema': shipped.schema }} />
        </>
      )}
    </Section>
  );
}

const SHOWN_MAX_CHARACTERS = 20_000;

function Files({ files }: { files: Readonly<Record<string, string>> }) {
  return (
    <>
      {Object.entries(files).map(([name, text]) => (
        <details key={name}>
          <summary>
            <UntrustedText text={name} />
          </summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard */}
          <pre className="source-text" tabIndex={0}>
            <UntrustedText text={text} lines="many" max={SHOWN_MAX_CHARACTERS} />
          </pre>
        </details>
      ))}
    </>
  );
}
