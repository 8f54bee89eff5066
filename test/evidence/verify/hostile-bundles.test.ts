import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { EvidenceStep } from '../../../lambdas/evidence/bundle/step-entry.ts';
import { replayOf } from '../../../lambdas/evidence/verify/check-replay.ts';
import { checkRules } from '../../../lambdas/evidence/verify/rules/check-rules.ts';
import { verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { onTerminal } from '../../cli/command-line.ts';
import { sealedBundle } from '../bundle/sealed-bundle.ts';

const bundle = await sealedBundle();
const text = bundle.document.toString();

it('a file of 1 GB is refused without reading it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hostile-'));
  try {
    const file = join(folder, 'bundle.json');
    writeFileSync(file, '{');
    // Sparse: it has the size, and needs no space.
    truncateSync(file, 1024 ** 3);
    writeFileSync(join(folder, 'bundle.dsse.json'), bundle.envelope);
    const before = process.memoryUsage().rss;
    const { exitCode, stderr } = await onTerminal(200, ['evidence', 'verify', file]);
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringContaining('the document has 1073741824 bytes; a bundle has at most'),
    ]);
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 ** 2);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it('an audit reports files that are far too large, and reads none of them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hostile-'));
  try {
    const large = (name: string) => {
      const file = join(folder, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, '{');
      truncateSync(file, 1024 ** 3);
    };
    large('log/acme/2026-01-01.json');
    large('log/acme/accepted/2026-01-01T05.json');
    large('log/acme/changes/2026-01-01.json');
    large('evidence/acme/run_1/bundle.json');
    large('evidence/acme/run_2/bundle.dsse.json');
    writeFileSync(join(folder, 'evidence/acme/run_2/bundle.json'), bundle.document);
    large('evidence/acme/run_2/addendum-00000009.json');
    const key = join(folder, 'key.pem');
    writeFileSync(key, generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }));
    const before = process.memoryUsage().rss;
    const { exitCode, stdout } = await onTerminal(200, ['evidence', 'audit', folder, '--key', key]);
    expect(exitCode).toBe(1);
    expect(stdout).toContain('its log cannot be read: the log has 1073741824 bytes');
    expect(stdout).toContain('its list of accepted runs cannot be read: the log has 1073741824 bytes');
    expect(stdout).toContain('its file of changes is not read: the log has 1073741824 bytes');
    expect(stdout).toMatch(/run_1 +cannot be read: the document has 1073741824 bytes/);
    expect(stdout).toMatch(/run_2 +cannot be read: the envelope has 1073741824 bytes/);
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 ** 2);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it.each([
  ['of 1 GB', { refused: 'the addendum has 1073741824 bytes', document: Buffer.alloc(0) }],
  ['that nests deeply', { document: Buffer.from('['.repeat(100_000)) }],
])('an addendum %s is named', (_what, addendum) => {
  const held = { name: 'bundle.addendum-9.json', envelope: bundle.envelope, ...addendum };
  expect(verifyBundle({ ...bundle, addenda: [held] })).toMatchObject({
    verdict: 'tampered',
    entry: 'bundle.addendum-9.json',
    problem: expect.stringContaining('is not an addendum: the addendum'),
  });
});

/** Each would take hours if a rule compared every event with every other. */
const MANY = 60_000;
const approvalId = 'run_1.2-0';
const terms = { approvalId, step: 'a', actionHash: 'h', tier: 'low', quorum: 1, groups: [['g']] };
const asked = { type: 'approval.requested', ...terms, asks: 'policy', makers: ['ana'] };
const decided = { type: 'policy.decided', step: 'a', index: 0, tool: 't', verdict: 'needs_approval', groups: [['g']] };
const of = (make: (at: number) => object[]) => Array.from({ length: MANY }, (_, at) => make(at)).flat();
it.each<[string, object[]]>([
  [
    'edits, votes and decisions of one approval',
    [
      asked,
      ...of((at) => [
        { type: 'approval.voted', ...terms, person: `p${at}`, decision: at % 2 === 0 ? 'approve' : 'reject' },
        { type: 'approval.edited', ...terms, person: `e${at}`, makers: ['ana'] },
        { type: 'approval.decided', approvalId, status: at % 2 === 0 ? 'approved' : 'rejected', people: [`p${at}`] },
      ]),
    ],
  ],
  [
    'signals before edits of one approval',
    [
      asked,
      ...of((at) => [{ type: 'step.signaled', step: 'a', index: 0, actor: `s${at}` }]),
      ...of((at) => [{ type: 'approval.edited', ...terms, person: `e${at}`, makers: ['ana', 's0', 'e0'] }]),
    ],
  ],
  ['covered writes', [decided, asked, ...of(() => [{ type: 'approval.covered', step: 'a', index: 0, approvalId }])]],
  [
    'attempts and undos of the same write',
    of((at) =>
      [at % 5000, 5000 + (at % 5000)].flatMap((index) => [
        { type: 'step.claimed', step: `s${index}`, index, tool: 't', leaseVersion: at + 1, attempt: 1 },
        { type: 'write.intended', step: `s${index}`, receiptKey: 'key', tool: 't' },
      ]),
    ).slice(0, 3 * MANY),
  ],
  [
    'writes that all succeeded, and undos',
    [
      ...Array.from({ length: 5_000 }, (_, index) => [
        { type: 'step.claimed', step: `s${index}`, index, tool: 't' },
        { type: 'write.intended', step: `s${index}`, receiptKey: `k${index}`, tool: 't' },
        { type: 'step.succeeded', step: `s${index}`, index },
      ]).flat(),
      ...Array.from({ length: 5_000 }, (_, index) => [
        { type: 'step.claimed', step: `undo_s${index}`, index: index + 5_000, tool: 't' },
        { type: 'write.intended', step: `undo_s${index}`, receiptKey: `u${index}`, tool: 't' },
      ]).flat(),
    ],
  ],
])('the rules are checked in seconds on many %s', (_what, events) => {
  const parsed = JSON.parse(text);
  const at = '2026-01-02T03:04:05.000Z';
  const commits = [{ seq: 1, at, events: events.map((event) => ({ ...event })) }];
  const before = process.threadCpuUsage();
  replayOf('run_1', commits as never);
  const { broken } = checkRules({ ...parsed, commits });
  expect(broken.length).toBeGreaterThan(0);
  // CPU time: a busy machine makes it hardly longer. It is some seconds; with quadratic work, minutes.
  expect(process.threadCpuUsage(before).user).toBeLessThan(20_000_000);
});

it('an index that no step can have is refused', () => {
  const document = Buffer.from(text.replaceAll('"index":0', '"index":5000000000'));
  expect(verifyBundle({ ...bundle, keys: [], document }).verdict).toBe('tampered');
  const step = EvidenceStep.shape.index;
  expect([step.safeParse(9_999).success, step.safeParse(10_000).success]).toEqual([true, false]);
});

it.each([
  ['a deeply nested document', '['.repeat(1_000_000)],
  [
    'a deeply nested value in a bundle',
    text.replace('"writes":4', `"writes":${'['.repeat(5_000)}${']'.repeat(5_000)}`),
  ],
])('%s is unreadable', (_what, document) => {
  expect(verifyBundle({ ...bundle, document: Buffer.from(document) })).toEqual({
    verdict: 'unreadable',
    problem: 'the document nests deeper than any bundle does',
  });
});

it('brackets in texts are no nesting', () => {
  const document = Buffer.from(text.replace('"workspace":"default"', `"workspace":"${'['.repeat(200)}\\"["`));
  expect(verifyBundle({ ...bundle, document })).toMatchObject({ verdict: 'tampered', entry: 'run' });
});

it('a bundle that is cut off at any of many places is never valid, and never an error of the program', () => {
  for (let length = 0; length < bundle.document.length; length += 997) {
    const { verdict } = verifyBundle({ ...bundle, document: bundle.document.subarray(0, length) });
    expect(['tampered', 'unreadable']).toContain(verdict);
  }
});
