import { type HttpEvent, type HttpResponse, json, Problem } from '../../entry/http.ts';
import type { EvidenceStore } from '../../evidence/evidence-store.ts';
import type { EvidenceRecord, RunStore } from '../../run/run-store.ts';
import type { Caller } from '../authorizer/api-keys.ts';
import { byRoute, type Handler, type Handlers } from '../router.ts';

/** A function handlers with at most 6 MB, and bytes travel in base64: more than this is asked for in ranges. */
const SENT_MAX_BYTES = 4 * 1024 * 1024;

export interface EvidenceApi {
  runs: Pick<RunStore, 'evidence'>;
  store: Pick<EvidenceStore, 'get'>;
}

const HANDLERS: Handlers<EvidenceApi, 'evidence'> = {
  'GET /api/v1/runs/{id}/evidence': async (api, caller, event) =>
    json(200, recordView(runIdIn(event), await recordOf(api, caller, event))),
  'GET /api/v1/runs/{id}/evidence/bundle.json': file('documentKey'),
  'GET /api/v1/runs/{id}/evidence/bundle.dsse.json': file('envelopeKey'),
};

/** A run's evidence, and its two files byte for byte, by the names that `countersign evidence verify` knows. */
export const handleEvidence = byRoute(HANDLERS);

const runIdIn = (event: HttpEvent): string => event.pathParameters?.id ?? '';

/** Another tenant's run, one that never was and one that has not ended answer alike. */
async function recordOf(api: EvidenceApi, { tenant }: Caller, event: HttpEvent): Promise<EvidenceRecord> {
  const runId = runIdIn(event);
  const record = /^run_[0-9a-f]+$/.test(runId) ? await api.runs.evidence(tenant, runId) : undefined;
  if (record) return record;
  throw new Problem(404, 'NOT_FOUND', `there is no evidence of ${runId}; it is sealed once a run has ended`);
}

function file(key: 'documentKey' | 'envelopeKey'): Handler<EvidenceApi> {
  return async (api, caller, event) => {
    const record = await recordOf(api, caller, event);
    return fileAnswer(await api.store.get(record[key]), event.headers.range);
  };
}

function recordView(runId: string, { sha256, sizeBytes, sealedAt }: EvidenceRecord) {
  const path = `/api/v1/runs/${runId}/evidence`;
  return { runId, sha256, sizeBytes, sealedAt, document: `${path}/bundle.json`, envelope: `${path}/bundle.dsse.json` };
}

function fileAnswer(content: Buffer, range = ''): HttpResponse {
  const size = content.length;
  const [, first, last = ''] = /^bytes=(\d+)-(\d*)$/.exec(range) ?? [];
  if (first === undefined) {
    if (size <= SENT_MAX_BYTES) return bytes(200, content);
    const next = `ask for ${SENT_MAX_BYTES} at a time, beginning with the header Range: bytes=0-`;
    throw new Problem(413, 'TOO_LARGE', `the file has ${size} bytes; ${next}`);
  }
  const from = Number(first);
  const to = Math.min(last === '' ? size : Number(last) + 1, from + SENT_MAX_BYTES, size);
  if (from >= to) throw new Problem(416, 'BAD_REQUEST', `the file has ${size} bytes`);
  return bytes(206, content.subarray(from, to), { 'content-range': `bytes ${from}-${to - 1}/${size}` });
}

function bytes(statusCode: number, content: Buffer, headers: Record<string, string> = {}): HttpResponse {
  return {
    statusCode,
    headers: { 'content-type': 'application/json', 'accept-ranges': 'bytes', ...headers },
    body: content.toString('base64'),
    isBase64Encoded: true,
  };
}
