import { Problem } from '../../entry/http.ts';
import { documentPlace, envelopePlace } from '../../evidence/bundle/bundle-object.ts';
import { changeLogEnvelopeKey, changeLogKey } from '../../evidence/change-log/change-log.ts';
import type { ChangeLogRows } from '../../evidence/change-log/close-change-days.ts';
import type { EvidenceStore, FindingStore } from '../../evidence/evidence-store.ts';
import { artifactKey } from '../../evidence/export/artifacts.ts';
import { isTextHash, textKey } from '../../evidence/named-texts.ts';
import type { EvidenceRecord, RunStore } from '../../run/run-store.ts';
import type { Caller } from '../authorizer/caller.ts';
import { changeFileRoutes, evidenceRoutes, textRoutes } from '../contract/evidence.ts';
import type { Contract } from '../contract/index.ts';
import { PAGE_MAX } from '../contract/schemas.ts';
import { type Request, router } from '../router.ts';

/** A function returns at most 6 MB, and bytes are sent in base64. Larger files are requested in ranges. */
const SENT_MAX_BYTES = 4 * 1024 * 1024;

interface EvidencePorts {
  runs: Pick<RunStore, 'evidence' | 'addenda'>;
  store: Pick<EvidenceStore, 'get'> & FindingStore;
  /** The values behind the digests, as long as they are retained. */
  artifacts: FindingStore;
  changeLogs: Pick<ChangeLogRows, 'lastClosed'>;
}

const routes = { ...evidenceRoutes, ...textRoutes, ...changeFileRoutes };

export const handleEvidence = router<EvidencePorts, Contract['evidence']>(routes, {
  getChangesFile: sendChanges,
  async getEvidence(ports, { caller, params: { id: runId }, query: { since } }) {
    const { sha256, sizeBytes, sealedAt, artifacts: stored = [] } = await recordOf(ports, caller, runId);
    const found = await ports.runs.addenda(caller.tenant, runId, { after: since, limit: PAGE_MAX + 1 });
    const path = `/api/v1/runs/${runId}/evidence`;
    const files = { document: `${path}/bundle.json`, envelope: `${path}/bundle.dsse.json` };
    const addenda = found.slice(0, PAGE_MAX).map((each) => ({
      ...each,
      document: `${path}/addenda/${each.seq}/addendum.json`,
      envelope: `${path}/addenda/${each.seq}/addendum.dsse.json`,
    }));
    const last = found.length > PAGE_MAX ? addenda.at(-1) : undefined;
    const more = last && { moreAddendaSince: last.seq };
    const artifacts = stored.map((each) => ({ ...each, document: `${path}/${each.name}.json` }));
    return { status: 200, body: { runId, sha256, sizeBytes, sealedAt, ...files, artifacts, addenda, ...more } };
  },
  getEvidenceAddendum: sendAddendum,
  async getEvidenceFile(ports, { caller, params: { id: runId, file }, headers }) {
    const record = await recordOf(ports, caller, runId);
    if (file === 'bundle.json') return fileResponse(await ports.store.get(...documentPlace(record)), headers.range);
    if (file === 'bundle.dsse.json')
      return fileResponse(await ports.store.get(...envelopePlace(record)), headers.range);
    return fileResponse(await artifactOf(ports, caller, record, { runId, file }), headers.range);
  },
  async getText(ports, { caller, params: { hash }, headers }) {
    const text = isTextHash(hash) ? await ports.store.find(textKey(caller.tenant, hash)) : undefined;
    if (text) return fileResponse(text, headers.range);
    throw new Problem(404, 'NOT_FOUND', `no policy set or workflow version is stored under the hash ${hash}`);
  },
});

/** The files of the tenant's changes, from the first day to the last. S3 would not say which of them exist. */
async function sendChanges(
  ports: EvidencePorts,
  {
    caller: { tenant },
    params: { day, file },
    headers,
  }: Pick<Request<typeof changeFileRoutes.getChangesFile>, 'caller' | 'params' | 'headers'>,
) {
  const closed = await ports.changeLogs.lastClosed(tenant);
  if (!closed || day < closed.first || day > closed.day) {
    const days = closed ? `there are files from ${closed.first} to ${closed.day}` : 'the first is written tomorrow';
    throw new Problem(404, 'NOT_FOUND', `there is no file of the changes of ${day}; ${days}`);
  }
  const keyOf = file === 'changes.json' ? changeLogKey : changeLogEnvelopeKey;
  return fileResponse(await ports.store.get(keyOf(tenant, day)), headers.range);
}

/** The response is the same for a run of another tenant, one that does not exist and one that has not ended. */
async function recordOf({ runs }: EvidencePorts, { tenant }: Caller, runId: string): Promise<EvidenceRecord> {
  const record = await runs.evidence(tenant, runId);
  if (record) return record;
  throw new Problem(404, 'NOT_FOUND', `there is no evidence of ${runId}; it is sealed when a run has ended`);
}

async function artifactOf(
  { artifacts }: EvidencePorts,
  { tenant }: Caller,
  record: EvidenceRecord,
  { runId, file }: { runId: string; file: 'values.json' | 'enrichment.json' | 'completion.json' },
): Promise<Buffer> {
  const what = file.replace('.json', '');
  const stored = record.artifacts?.find(({ name }) => name === what);
  const { key = artifactKey({ tenant, runId }, file), offset, sizeBytes = 0 } = stored ?? {};
  const found = await artifacts.find(key, offset === undefined ? undefined : { offset, sizeBytes });
  if (found) return found;
  const why = 'the stage does not export artifacts, they were deleted, or an earlier release sealed the run';
  throw new Problem(404, 'NOT_FOUND', `there ${what === 'values' ? 'are no' : 'is no'} ${what} of ${runId}: ${why}`);
}

async function sendAddendum(
  ports: EvidencePorts,
  {
    caller,
    params,
    headers,
  }: Pick<Request<typeof evidenceRoutes.getEvidenceAddendum>, 'caller' | 'params' | 'headers'>,
) {
  await recordOf(ports, caller, params.id);
  const seq = /^[1-9]\d{0,7}$/.test(params.seq) ? Number(params.seq) : 0;
  const [found] = await ports.runs.addenda(caller.tenant, params.id, { after: Math.max(0, seq - 1), limit: 1 });
  if (found?.seq !== seq) {
    throw new Problem(404, 'NOT_FOUND', `${params.id} has no addendum ${params.seq}; GET …/evidence lists them`);
  }
  const key = params.file === 'addendum.json' ? found.documentKey : found.envelopeKey;
  return fileResponse(await ports.store.get(key), headers.range);
}

function fileResponse(content: Buffer, range = '') {
  const size = content.length;
  const headers = { 'accept-ranges': 'bytes' };
  const [, first, last = ''] = /^bytes=(\d+)-(\d*)$/.exec(range) ?? [];
  if (first === undefined) {
    if (size <= SENT_MAX_BYTES) return { status: 200 as const, body: content, headers };
    const next = `request ${SENT_MAX_BYTES} bytes at a time, beginning with the header Range: bytes=0-`;
    throw new Problem(413, 'TOO_LARGE', `the file has ${size} bytes; ${next}`);
  }
  const from = Number(first);
  const to = Math.min(last === '' ? size : Number(last) + 1, from + SENT_MAX_BYTES, size);
  if (from >= to) throw new Problem(416, 'BAD_REQUEST', `the file has ${size} bytes`);
  return {
    status: 206 as const,
    body: content.subarray(from, to),
    headers: { ...headers, 'content-range': `bytes ${from}-${to - 1}/${size}` },
  };
}
