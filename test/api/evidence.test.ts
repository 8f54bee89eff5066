import { beforeEach, describe, expect, it } from 'vitest';
import { handleEvidence } from '../../lambdas/api/evidence/evidence.ts';
import type { HttpEvent } from '../../lambdas/entry/http.ts';
import type { EvidenceRecord } from '../../lambdas/run/run-store.ts';
import { MemoryEvidenceStore } from '../fakes/memory/memory-evidence-store.ts';

const RUN = 'run_00000001';
const FOUR_MIB = 4 * 1024 * 1024;
const RECORD: EvidenceRecord = {
  documentKey: `evidence/acme/${RUN}/bundle.json`,
  envelopeKey: `evidence/acme/${RUN}/bundle.dsse.json`,
  sha256: 'a'.repeat(64),
  sizeBytes: 12,
  sealedAt: '2026-01-02T03:04:05.000Z',
};
const COMPLETION = {
  name: 'completion' as const,
  key: `artifacts/acme/${RUN}/completion.json`,
  sha256: 'b'.repeat(64),
  sizeBytes: 2,
};

const ADDENDA = [8, 9].map((seq) => ({ seq, ...RECORD }));

let store: MemoryEvidenceStore;
beforeEach(async () => {
  store = new MemoryEvidenceStore();
  await store.putOnce(RECORD.documentKey, Buffer.from('{"run":"ä €"}'), 'application/json');
  await store.putOnce(RECORD.envelopeKey, Buffer.from('{"payload":""}'), 'application/json');
});

interface Asked {
  tenant?: string;
  id?: string;
  range?: string;
  seq?: string;
}

function ask(path: string, { tenant = 'acme', id = RUN, range, seq }: Asked = {}) {
  const runs = {
    evidence: async (asked: string, runId: string) =>
      asked === 'acme' && runId === RUN ? { ...RECORD, artifacts: [COMPLETION] } : undefined,
    runIdsStartingWith: async (asked: string, prefix: string) =>
      asked === 'acme' && RUN.startsWith(prefix) ? [RUN] : [],
    addenda: async (_tenant: string, _runId: string, { after, limit }: { after: number; limit: number }) =>
      ADDENDA.filter(({ seq }) => seq > after).slice(0, limit),
  };
  const file = /[^/]+\.json$/.exec(path)?.[0];
  const event = {
    routeKey: `GET /api/v1/runs/{id}/evidence${file === undefined ? path : path.replace(file, '{file}')}`,
    rawPath: `/api/v1/runs/${id}/evidence${path}`,
    pathParameters: { id, seq, file },
    headers: range === undefined ? {} : { range },
    requestContext: { authorizer: { lambda: { tenant, role: 'auditor', person: 'ada' } } },
  } as unknown as HttpEvent;
  const changeLogs = { lastClosed: async () => undefined };
  return handleEvidence({ runs, store, artifacts: store, changeLogs }, event);
}

const bodyOf = (answer: { body?: string }) => Buffer.from(answer.body ?? '', 'base64');

it.each(['enrichment.json', 'completion.json', 'values.json'])(
  'an artifact, %s, is returned as it is stored',
  async (file) => {
    await expect(ask(`/${file}`)).rejects.toMatchObject({
      status: 404,
      message: expect.stringContaining('were deleted'),
    });
    await store.putOnce(`artifacts/acme/${RUN}/${file}`, Buffer.from('{"ä":1}'), 'application/json');
    expect(String(bodyOf(await ask(`/${file}`)))).toBe('{"ä":1}');
    await expect(ask(`/${file}`, { tenant: 'globex' })).rejects.toMatchObject({ status: 404 });
  },
);

describe('GET /api/v1/runs/{id}/evidence', () => {
  it('returns hash, size, time and files of the evidence', async () => {
    const { statusCode, body } = await ask('');
    expect(statusCode).toBe(200);
    expect(JSON.parse(body ?? '')).toEqual({
      runId: RUN,
      sha256: RECORD.sha256,
      sizeBytes: 12,
      sealedAt: '2026-01-02T03:04:05.000Z',
      document: `/api/v1/runs/${RUN}/evidence/bundle.json`,
      envelope: `/api/v1/runs/${RUN}/evidence/bundle.dsse.json`,
      artifacts: [{ ...COMPLETION, document: `/api/v1/runs/${RUN}/evidence/completion.json` }],
      addenda: ADDENDA.map(({ seq }) => ({
        seq,
        sha256: RECORD.sha256,
        sizeBytes: 12,
        sealedAt: '2026-01-02T03:04:05.000Z',
        document: `/api/v1/runs/${RUN}/evidence/addenda/${seq}/addendum.json`,
        envelope: `/api/v1/runs/${RUN}/evidence/addenda/${seq}/addendum.dsse.json`,
      })),
    });
  });

  it('returns an addendum by the number of its commit', async () => {
    const answer = await ask('/addenda/{seq}/addendum.json', { seq: '9' });
    expect(bodyOf(answer)).toEqual(await store.get(RECORD.documentKey));
    await expect(ask('/addenda/{seq}/addendum.json', { seq: '10' })).rejects.toMatchObject({ status: 404 });
    await expect(ask('/addenda/{seq}/addendum.dsse.json', { seq: 'x' })).rejects.toMatchObject({ status: 404 });
    const other = ask('/addenda/{seq}/addendum.json', { seq: '9', tenant: 'globex' });
    await expect(other).rejects.toMatchObject({ status: 404 });
  });

  it('returns both files byte for byte', async () => {
    const document = await ask('/bundle.json');
    expect(document).toMatchObject({ statusCode: 200, isBase64Encoded: true });
    expect(bodyOf(document).toString()).toBe('{"run":"ä €"}');
    expect(bodyOf(await ask('/bundle.dsse.json')).toString()).toBe('{"payload":""}');
  });

  it('has no other files', async () => {
    await expect(ask('/secret.json')).rejects.toMatchObject({ status: 400 });
  });

  it.each<[string, Asked]>([
    ['of another tenant', { tenant: 'globex' }],
    ['that never was', { id: 'run_00000002' }],
    ['whose id is none', { id: '../acme/run_00000001' }],
  ])('responds in the same way to a run %s as to a run without evidence', async (_what, asked) => {
    await expect(ask('/bundle.json', asked)).rejects.toMatchObject({ status: 404, code: 'NOT_FOUND' });
  });

  it('returns a large document in parts that fit in one response', async () => {
    const large = Buffer.alloc(FOUR_MIB + 10, 'x');
    store = new MemoryEvidenceStore();
    await store.putOnce(RECORD.documentKey, large, 'application/json');
    await expect(ask('/bundle.json')).rejects.toMatchObject({ status: 413 });
    const first = await ask('/bundle.json', { range: 'bytes=0-' });
    expect(first.headers?.['content-range']).toBe(`bytes 0-${FOUR_MIB - 1}/${FOUR_MIB + 10}`);
    const rest = await ask('/bundle.json', { range: `bytes=${FOUR_MIB}-` });
    expect(rest.statusCode).toBe(206);
    expect(Buffer.concat([bodyOf(first), bodyOf(rest)]).equals(large)).toBe(true);
  });

  it.each([
    ['bytes=2-4', 'run', 'bytes 2-4/16'],
    ['bytes=11-99', '€"}', 'bytes 11-15/16'],
  ])('responds to %s with that range', async (range, text, contentRange) => {
    const answer = await ask('/bundle.json', { range });
    expect([answer.statusCode, bodyOf(answer).toString()]).toEqual([206, text]);
    expect(answer.headers?.['content-range']).toBe(contentRange);
  });

  it('refuses a range after the end', async () => {
    await expect(ask('/bundle.json', { range: 'bytes=16-' })).rejects.toMatchObject({ status: 416 });
  });
});
