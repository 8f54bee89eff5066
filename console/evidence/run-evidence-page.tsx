import Button from '@cloudscape-design/components/button';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { ResponseFrom } from '../../client/api-client.ts';
import { call, download, isNotFound, useApi } from '../data/api.ts';
import { CommandLine, Copyable } from '../parts/copyable.tsx';
import { Page } from '../parts/page.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { applyTheme } from '../parts/preferences.ts';
import { EmptyState, Problem } from '../parts/problem.tsx';
import { Facts } from '../parts/section.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import type { HeldFile, HeldFiles } from './held-files.ts';
import { Report } from './report.tsx';
import { saveFile } from './save-file.ts';
import { usePublishedKeys, useVerifier } from './use-verifier.ts';

type EvidenceRecord = ResponseFrom<'GET /api/v1/runs/{id}/evidence'>;

/** The evidence of one run: downloads it, verifies it in this browser, and shows it for reading and printing. */
export default function RunEvidencePage({ id }: { id: string }) {
  const { data: run, error: runError } = useApi('GET /api/v1/runs/{id}', { params: { id } });
  const { data: record, error, refetch } = useApi('GET /api/v1/runs/{id}/evidence', { params: { id } });
  const title = run ? `Evidence: ${run.title ?? run.subject ?? run.automation}` : 'Evidence';
  if (isNotFound(runError)) {
    return (
      <Page title="Evidence">
        <EmptyState title="There is no such run" action={<Link href="/evidence">Show the evidence of all runs</Link>}>
          No run has the ID <UntrustedText text={id} max={80} />. It may belong to another tenant.
        </EmptyState>
      </Page>
    );
  }
  // Evidence that is not found says nothing about the run: wait for its response.
  const hasNoEvidence = isNotFound(error) && run !== undefined;
  if (!record) {
    return (
      <Page title={title}>
        {hasNoEvidence && (
          <EmptyState title="This run has no evidence yet">
            It is signed within a minute after the run has ended. <Link href={`/runs/${id}`}>Show the run</Link>
          </EmptyState>
        )}
        {error && !isNotFound(error) && <Problem error={error} retry={refetch} />}
        {runError && isNotFound(error) && <Problem error={runError} retry={refetch} />}
        {!error && 'Loading …'}
      </Page>
    );
  }
  return <Evidence title={title} record={record} />;
}

function Evidence({ title, record }: { title: string; record: EvidenceRecord }) {
  const { runId, sha256, sizeBytes, sealedAt } = record;
  const keys = usePublishedKeys();
  const verifier = useVerifier();
  const files = useQuery({ queryKey: ['evidence', runId, sha256], queryFn: () => downloadAll(record) });
  const held = files.data;
  const verified = useQuery({
    queryKey: ['verified', runId, sha256],
    queryFn: () => verifier.data?.verify({ ...(held as Omit<HeldFiles, 'keys'>), keys: keys.data }),
    enabled: held !== undefined && verifier.data !== undefined && !keys.isPending,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const error = files.error ?? verifier.error ?? verified.error;
  return (
    <Page
      title={title}
      description="Verified in this browser, with the code of the command line."
      actions={
        <div className="buttons no-print">
          <Button disabled={!held} onClick={() => held && saveAll(held, keys.data)}>
            Download the files
          </Button>
          <Button disabled={!verified.data} onClick={printInLight}>
            Print
          </Button>
        </div>
      }
    >
      {error && <Problem error={error} retry={() => files.refetch()} />}
      {!error && !verified.data && <p role="status">Verifying …</p>}
      {verified.data && <Report name={`${runId}.json`} verified={verified.data} />}
      <Facts
        facts={[
          ['Signed', <PointInTime key="at" at={sealedAt} />],
          ['Size', `${sizeBytes.toLocaleString('en-US')} bytes`],
          ['Run', <Copyable key="run" text={runId} label="the ID of the run" />],
          ['SHA-256 of the bundle', <Copyable key="hash" text={sha256} label="the hash of the bundle" />],
        ]}
      />
      <div className="on-command-line no-print">
        On the command line: <CommandLine command={`countersign evidence get ${runId}`} />
        <br />
        <CommandLine command={`countersign evidence verify ${runId}.json --key countersign-keys.json`} />
      </div>
    </Page>
  );
}

async function downloadAll({ runId }: EvidenceRecord): Promise<Omit<HeldFiles, 'keys'>> {
  const params = { id: runId };
  const get = (file: 'bundle.json' | 'bundle.dsse.json') =>
    download('GET /api/v1/runs/{id}/evidence/{file}', { params: { ...params, file } });
  const addenda: HeldFile[] = [];
  for (let since: number | undefined = 0; since !== undefined; ) {
    const page: EvidenceRecord = await call('GET /api/v1/runs/{id}/evidence', {
      params,
      query: { since: String(since) as never },
    });
    for (const { seq } of page.addenda) {
      const getAddendum = (file: 'addendum.json' | 'addendum.dsse.json') =>
        download('GET /api/v1/runs/{id}/evidence/addenda/{seq}/{file}', {
          params: { id: runId, seq: String(seq), file },
        });
      addenda.push({
        name: `${runId}.addendum-${seq}.json`,
        document: await getAddendum('addendum.json'),
        envelope: await getAddendum('addendum.dsse.json'),
      });
    }
    since = page.moreAddendaSince;
  }
  return {
    name: `${runId}.json`,
    document: await get('bundle.json'),
    envelope: await get('bundle.dsse.json'),
    addenda,
  };
}

/** Paper is white. */
function printInLight(): void {
  document.body.classList.remove('awsui-dark-mode');
  print();
  applyTheme();
}

const envelopeName = (name: string): string => name.replace(/\.json$/, '.dsse.json');

function saveAll({ name, document, envelope, addenda }: Omit<HeldFiles, 'keys'>, keys: string | undefined): void {
  saveFile(name, document);
  saveFile(envelopeName(name), envelope);
  for (const each of addenda) {
    saveFile(each.name, each.document);
    if (each.envelope) saveFile(envelopeName(each.name), each.envelope);
  }
  if (keys !== undefined) saveFile('countersign-keys.json', new TextEncoder().encode(keys));
}
