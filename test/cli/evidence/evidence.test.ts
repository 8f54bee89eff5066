import { spawnSync } from 'node:child_process';
import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest';
import { evidencePage } from '../../../bin/commands/evidence/html.ts';
import { alignedLines } from '../../../bin/terminal/table.ts';
import { bundleClaim } from '../../../lambdas/evidence/bundle/bundle-claim.ts';
import { signClaim } from '../../../lambdas/evidence/signing/dsse.ts';
import { RULES } from '../../../lambdas/evidence/verify/rules/check-rules.ts';
import { type TrustedKey, trustedKeys } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { inBatch, SIGNER, sealedBundle } from '../../evidence/bundle/sealed-bundle.ts';
import denied from '../../evidence/vectors/rules/format-2/rule-02.json' with { type: 'json' };
import vectors from '../../evidence/vectors/vectors.json' with { type: 'json' };
import { countersign, onTerminal, ROOT, type StubApi, stubApi } from '../command-line.ts';

const COLUMNS = 100;
/** More entries than a function can have arguments. */
const COMMITS_OF_A_LONG_RUN = 150_000;

let folder: string;
let bundle: string;
let key: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'countersign-evidence-'));
  bundle = put('bundle.json', vectors.document);
  put('bundle.dsse.json', vectors.envelope);
  key = put('key.pem', vectors.publicKey);
});
afterEach(() => {
  vi.unstubAllGlobals();
  rmSync(folder, { recursive: true, force: true });
});

function put(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** The list of keys as the stage publishes it, with one key. */
function published(change: object): string {
  const [{ algorithm, fingerprint }] = trustedKeys(vectors.publicKey) as [TrustedKey];
  const key = { keyId: 'test-key/evidence', validUntil: null, algorithm, fingerprint, pem: vectors.publicKey };
  return put('countersign-keys.json', JSON.stringify({ keys: [{ ...key, ...change }] }));
}

const evidence = (...args: string[]) => onTerminal(COLUMNS, ['evidence', ...args]);

function offline(): void {
  vi.stubGlobal('fetch', () => {
    throw new Error('the network was asked');
  });
}

describe('evidence verify', () => {
  it('summarizes a valid bundle offline and exits with 0', async () => {
    offline();
    const { exitCode, lines } = await evidence('verify', bundle, '--key', key);
    expect(exitCode).toBe(0);
    expect(lines[0]).toBe('valid: acme/run_00000001, failed_terminal');
    expect(lines.join('\n')).toMatch(
      /chain +10 commits to [0-9a-f]{64}\n +contains +4 steps, 6 decisions, 1 approval, 4 receipts/,
    );
    expect(lines.slice(-6)).toEqual([
      expect.stringMatching(/^ +key +Ed25519, sha256 [0-9a-f]{64}$/),
      '  intact    yes: nothing was changed since it was sealed',
      '  rules     followed (20 rules checked)',
      ...RULES.slice(20).map(
        ({ number, name }) =>
          `    rule ${number}, ${name}: not checkable: bundles of format 1 do not contain what it needs`,
      ),
    ]);
  });

  it('exits with 3 for an intact bundle of a run that broke a rule, and names rule and entry', async () => {
    const broken = denied.vectors[0] ?? { document: '', envelope: '' };
    put('bundle.json', broken.document);
    put('bundle.dsse.json', broken.envelope);
    const { exitCode, lines } = await evidence('verify', bundle, '--key', key);
    expect([exitCode, lines[0]]).toEqual([3, 'rules broken: acme/run_00000001, succeeded']);
    expect(lines).toContain('  intact    yes: nothing was changed since it was sealed');
    expect(lines.at(-1)).toBe(
      '    rule 2, denied-calls-are-not-made: commit 5 (assign) makes a call although policy decided: deny',
    );
    const { stdout } = await evidence('verify', bundle, '--key', key, '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      verdict: 'rules_broken',
      intact: true,
      rules: {
        checked: RULES.map(({ number, name }) => ({ rule: number, name })),
        broken: [{ rule: 2, name: 'denied-calls-are-not-made', entry: 'commit 5 (assign)' }],
        notCheckable: [],
      },
    });
    const shown = await evidence('show', bundle, '--key', key);
    expect(shown.stdout).toMatch(/^rules +BROKEN: 2, denied-calls-are-not-made$/m);
    expect((await evidence('html', bundle, '--key', key)).stdout).toContain('<p class="verdict broken">');
  });

  it.each(vectors.tampered)('exits with 1 and names $entry when $what', async ({ in: file, from, to, entry }) => {
    const [name, content] =
      file === 'document' ? ['bundle.json', vectors.document] : ['bundle.dsse.json', vectors.envelope];
    put(name, content.replace(from, to));
    const { exitCode, stdout } = await evidence('verify', bundle, '--key', key);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(new RegExp(`^tampered: ${entry} `));
  });

  it('exits with 1 when another key signed it', async () => {
    const { publicKey } = generateKeyPairSync('ed25519');
    const stranger = put('other.pem', publicKey.export({ type: 'spki', format: 'pem' }));
    const { exitCode, stdout } = await evidence('verify', bundle, '--key', stranger);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^tampered: signature was not made by the trusted key/);
  });

  it('exits with 2 without a key, and says what is missing', async () => {
    const { exitCode, stdout, stderr } = await evidence('verify', bundle);
    expect(exitCode).toBe(2);
    expect(stdout).toMatch(/^unproven: acme\/run_00000001/);
    expect(stderr).toContain('Pass the public key of the stage with --key');
  });

  it('exits with 1 for a tampered bundle, also without a key', async () => {
    put('bundle.json', vectors.document.replace('"writes":4', '"writes":3'));
    const { exitCode, stdout } = await evidence('verify', bundle);
    expect([exitCode, stdout]).toEqual([1, 'tampered: run was edited']);
  });

  it.each<[string, () => string[], RegExp]>([
    ['the document is missing', () => [join(folder, 'other.json')], /cannot read .*other\.json: it does not exist/],
    [
      'the envelope is missing',
      () => [put('alone.json', vectors.document)],
      /alone\.dsse\.json does not exist; the signature of a bundle must be beside it/,
    ],
    ['the key is missing', () => [bundle, '--key', join(folder, 'no.pem')], /cannot read .*no\.pem: it does not exist/],
    ['the key is none', () => [bundle, '--key', put('no.txt', 'x')], /contains no public key/],
    [
      'the list of keys is none',
      () => [bundle, '--key', bundle],
      /bundle\.json contains no usable key: it is JSON, but/,
    ],
    ['the file is a folder', () => [folder], /does not exist/],
  ])('exits with 2 when %s', async (_what, args, message) => {
    const { exitCode, stderr } = await evidence('verify', ...args());
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(message);
  });

  it('exits with 2 when the envelope cannot be read', async () => {
    put('bundle.dsse.json', 'nothing of the sort');
    const { exitCode, stdout } = await evidence('verify', bundle, '--key', key);
    expect([exitCode, stdout]).toEqual([2, 'unreadable: the envelope is not JSON']);
  });

  it('takes either of the two files, and the published list of keys', async () => {
    const { exitCode } = await evidence('verify', join(folder, 'bundle.dsse.json'), '--key', published({}));
    expect(exitCode).toBe(0);
  });

  it.each<[string, object, RegExp]>([
    ['its key was retired before', { validUntil: '2025-06-01' }, /its key was retired on 2025-06-01/],
    ['its key is published under another name', { keyId: 'other' }, /names test-key\/evidence, but other made it/],
  ])('exits with 1 if, according to the published keys, %s', async (_what, change, problem) => {
    const { exitCode, stdout } = await evidence('verify', bundle, '--key', published(change));
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^tampered: signature /);
    expect(stdout).toMatch(problem);
  });

  it('exits with 2 when the published fingerprint is that of another key', async () => {
    const { exitCode, stderr } = await evidence('verify', bundle, '--key', published({ fingerprint: '0'.repeat(64) }));
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('has the fingerprint of another key')]);
  });

  it('prints its verdict as JSON', async () => {
    const { exitCode, stdout } = await countersign(['evidence', 'verify', bundle, '--key', key, '--json']);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ verdict: 'valid', summary: { commits: 10 } });
  });

  it('exits with 70 for a bug in the program', async () => {
    const fault = "String.prototype.trimEnd = () => { throw new RangeError('planted') }";
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(fault)}`;
    const { exitCode, stderr } = await countersign(['evidence', 'show', bundle], { NODE_OPTIONS });
    expect([exitCode, stderr]).toEqual([70, expect.stringContaining('RangeError: planted')]);
  });

  it('documents its own --key, not the API key', async () => {
    const { stdout } = await evidence('verify', '--help');
    expect(stdout).toMatch(/--key PEM\|JSON +file with the trusted public keys/);
    expect(stdout).not.toContain('API key');
  });
});

describe('evidence show', () => {
  it('shows decisions, approvals, writes, the rollback and every commit', async () => {
    const { exitCode, stdout } = await onTerminal(400, ['evidence', 'show', bundle, '--key', key]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^acme\/run_00000001: failed_terminal, rolled back\n/);
    expect(stdout).toMatch(/^rolled back +by worker, because of TARGET_REFUSED$/m);
    const document = JSON.parse(vectors.document);
    const receipt = document.receipts.find(({ step }: { step: string }) => step === 'assign');
    const decision = document.decisions.findLast(({ step }: { step: string }) => step === 'assign');
    expect(stdout).toContain(
      `github issues.opened > needs_approval by writes > approved by ben, cleo (${receipt.grounds.approvalId}) > ` +
        `assign: ${receipt.tool} ${receipt.target} (assignment_group), reversed, 2026-01-02 `,
    );
    const hashes = [decision.policyHash, decision.actionHash, receipt.requestHash];
    for (const hash of hashes) expect(stdout).toContain(` ${hash}\n`);
    expect(stdout).toMatch(/^signature +valid: Ed25519/m);
    expect(stdout).toMatch(/^3 +assign +needs_approval +writes +needs_approval in prod$/m);
    expect(stdout).toMatch(
      /^assign +2026-01-02 03:04:07.500 +requested: 2 people for medium risk, from dba; makers: olga, dora\n.* dora in slack: edit assignment_group from sha256 .*\n.* ben in slack: approve \(reason: 13 bytes, sha256 [0-9a-f]{12}…\)\n.* cleo in slack: approve\n.* approved$/m,
    );
    expect(stdout).toMatch(
      /^assign +servicenow:acme:incident:\S+ +assignment_group +reversed +servicenow.incident.update$/m,
    );
    expect(stdout).toMatch(
      /^AWS requests +at least 1 bedrock.Converse, 10 dynamodb.TransactWriteItems, 1 states.StartExecution$/m,
    );
    expect(stdout).toMatch(/^bedrock +claude +1 +1200 +80 +0.0048$/m);
    expect(stdout).toMatch(/^6 +2026-01-02 03:04:11.250 +assign: cleo voted approve in slack$/m);
    const { id } = JSON.parse(vectors.document).steps.find(
      ({ status }: { status: string }) => status === 'failed_terminal',
    );
    expect(stdout).toMatch(new RegExp(`${id}: failed: TARGET_REFUSED: \\[24 bytes, sha256 [0-9a-f]{12}…\\]`));
  });

  it.each([60, 80, 100])('fits a terminal of %i columns without omitting text', async (columns) => {
    const words = (text: string) => text.replace(/\s/g, '');
    const [narrow, wide] = [
      await onTerminal(columns, ['evidence', 'show', bundle, '--key', key]),
      await onTerminal(400, ['evidence', 'show', bundle, '--key', key]),
    ];
    expect(narrow.lines.filter((line) => line.length > columns)).toEqual([]);
    expect([...words(narrow.stdout)].sort()).toEqual([...words(wide.stdout)].sort());
  });

  it('does not wrap full hashes on 80 columns', async () => {
    const { stdout } = await onTerminal(80, ['evidence', 'show', bundle, '--key', key]);
    const { versions, head } = JSON.parse(vectors.document);
    for (const hash of [...versions.policies, head.hash]) expect(stdout).toContain(hash);
    expect(stdout).toMatch(/^document +[0-9a-f]{64}$/m);
    expect(stdout).toMatch(/^public key +[0-9a-f]{64}$/m);
  });

  it('supports as many rows as a run may have commits', () => {
    const rows = Array.from({ length: COMMITS_OF_A_LONG_RUN }, (_, index) => [String(index), ['step', 'run']]);
    const lines = alignedLines([{}, { shrink: 'wrap' }], rows, { columns: COLUMNS, paint: (_tone, text) => text });
    expect(lines).toHaveLength(2 * COMMITS_OF_A_LONG_RUN);
  });

  it('says so if the signature was not checked', async () => {
    const { exitCode, stdout } = await evidence('show', bundle);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^signature +NOT CHECKED/m);
  });

  it('does not show a tampered bundle', async () => {
    put('bundle.json', vectors.document.replace('"writes":4', '"writes":3'));
    const { exitCode, stdout, stderr } = await evidence('show', bundle, '--key', key);
    expect([exitCode, stdout]).toEqual([1, '']);
    expect(stderr).toBe('tampered: run was edited; the bundle is not shown');
  });

  it('prints the document with --json', async () => {
    const { stdout } = await evidence('show', bundle, '--key', key, '--json');
    expect(JSON.parse(stdout)).toEqual(JSON.parse(vectors.document));
  });
});

describe('evidence html', () => {
  async function page(...args: string[]): Promise<string> {
    const out = join(folder, 'bundle.html');
    const { exitCode } = await evidence('html', bundle, '--out', out, ...args);
    expect(exitCode).toBe(0);
    return readFileSync(out, 'utf8');
  }

  it('writes one self-contained page', async () => {
    const html = await page('--key', key);
    expect(html).toMatch(/^<!doctype html>\n<html lang="en">/);
    expect(html).toContain("default-src 'none'; style-src 'unsafe-inline'");
    expect(html).not.toMatch(/<script|<link|<img|<iframe|src=|href=|url\(|@import/i);
    expect(html.match(/<h2>([^<]+)<\/h2>/g)).toEqual(
      ['From request to write', 'Steps', 'Policy decisions', 'Approvals', 'Writes', 'Rollback', 'Cost', 'Timeline'].map(
        (title) => `<h2>${title}</h2>`,
      ),
    );
    expect(html).toContain(
      '<td>assign: cleo voted approve in slack<br>assign: approved by ben and cleo<br>run: running</td>',
    );
  });

  it('closes every element', async () => {
    const html = await page('--key', key);
    const open: string[] = [];
    for (const [, closes, name = ''] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)[^>]*>/g)) {
      if (['meta', 'br', 'wbr'].includes(name)) continue;
      if (closes) expect(open.pop()).toBe(name);
      else open.push(name);
    }
    expect(open).toEqual([]);
  });

  it('says at the top whether the signature was checked', async () => {
    expect(await page('--key', key)).toMatch(/<p class="verdict valid">.*signed with the key below/);
    expect(await page()).toMatch(/<p class="verdict unproven">[^<]*signature was not checked/);
  });

  it('exits with 2 if the file cannot be written', async () => {
    const { exitCode, stderr } = await evidence('html', bundle, '--out', join(folder, 'none', 'x.html'));
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringMatching(/^cannot write .*x\.html: its folder does not exist$/),
    ]);
  });

  it('lets only long words break', () => {
    const long = 'a'.repeat(16);
    const section = { title: 'Writes', columns: ['Fields'], rows: [[`${long} assignment_grp`], [`x:${long}`]] };
    const html = evidencePage({ heading: 'x', facts: [['subject', long]], sections: [section] }, 'valid');
    expect(html).toMatch(/^ {2}\.long \{ overflow-wrap: anywhere; \}$/m);
    expect(html).toContain(`<dd><span class="long">${long}</span></dd>`);
    expect(html).toContain(`<td><span class="long">${long}</span> assignment_grp</td>`);
    expect(html).toContain(`<td><span class="long">x:<wbr>${long}</span></td>`);
    const group = '0123456789abcdef';
    const hash = evidencePage({ heading: 'x', facts: [['head', group.repeat(4)]], sections: [] }, 'valid');
    expect(hash).toContain(`<dd><span class="long">${Array(4).fill(group).join('<wbr>')}</span></dd>`);
  });

  it('escapes markup in a bundle', () => {
    const nasty = `<img src=x onerror="alert('&')">`;
    const facts: [string, string][] = [[nasty, nasty]];
    const html = evidencePage(
      { heading: nasty, facts, sections: [{ title: nasty, columns: [nasty], rows: [[nasty]] }] },
      'valid',
    );
    expect(html).not.toContain('<img');
    const words = html.replaceAll(/<\/?span[^>]*>/g, '');
    expect(words.match(/&lt;img src=x onerror=&quot;alert\(&#39;&amp;&#39;\)&quot;&gt;/g)).toHaveLength(7);
  });
});

describe('evidence get', () => {
  let api: StubApi;
  afterEach(() => api.close());

  it('says so if the bundle is not sealed yet', async () => {
    api = await stubApi(() => ({
      status: 404,
      body: { detail: 'there is no evidence of it; it is sealed once a run has ended' },
    }));
    const runId = `run_${'0'.repeat(32)}`;
    const { exitCode, stderr } = await evidence('get', runId, '--url', api.url, '--out', join(folder, 'got.json'));
    expect(exitCode).toBe(1);
    expect(stderr).toContain('sealed once a run has ended');
  });
});

const isThere = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const TOOLS = ['bash', 'openssl', 'sha256sum', 'base64', 'sed', 'jq', 'xxd'];
const missing = TOOLS.filter((tool) => !isThere(tool));

describe(`the commands of docs/evidence-format.md${missing.length > 0 ? ` (SKIPPED: no ${missing.join(', ')} here)` : ''}`, () => {
  const format = readFileSync(join(ROOT, 'docs', 'evidence-format.md'), 'utf8');
  const [proof = '', batch = '', chain = ''] = [...format.matchAll(/```sh\n([\s\S]*?)```/g)].map(
    ([, script]) => script ?? '',
  );
  const run = (script: string) => spawnSync('bash', ['--norc', '-c', script], { cwd: folder, encoding: 'utf8' });

  test.skipIf(missing.length > 0)('confirm a bundle without any program of ours', () => {
    const { status, stdout, stderr } = run(`${proof}\n${chain}`);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toBe('Signature Verified Successfully\nbundle.json: OK\nchain of 10 commits: OK\n');
  });

  test.skipIf(missing.length > 0).each<[string, string, (text: string) => string]>([
    ['an edited document', 'bundle.json', (text) => text.replace('"writes":4', '"writes":3')],
    ['another statement', 'bundle.dsse.json', (text) => text.replace(/"payload":"eyJ/, '"payload":"eyI')],
    ['another signature', 'bundle.dsse.json', (text) => text.replace(/"sig":"...../, '"sig":"AAAAA')],
  ])('refuse %s', (_what, file, change) => {
    const path = join(folder, file);
    writeFileSync(path, change(readFileSync(path, 'utf8')));
    expect(run(proof).status).not.toBe(0);
  });

  test.skipIf(missing.length > 0)('confirm a bundle signed with ECDSA P-256 too', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const signature = (message: Buffer) => sign('sha256', message, privateKey);
    const signer = {
      keyId: 'p256',
      sign: async (message: Buffer) => ({ keyId: 'p256', signature: signature(message) }),
    };
    put('bundle.dsse.json', await signClaim(bundleClaim(Buffer.from(vectors.document)), signer));
    put('key.pem', publicKey.export({ type: 'spki', format: 'pem' }));
    const [, ecdsa = ''] = /`(openssl dgst -sha256 -verify [^`]+)`/.exec(format) ?? [];
    const { status, stdout } = run(proof.replace(/^openssl pkeyutl.*$/m, ecdsa));
    expect([status, stdout]).toEqual([0, 'Verified OK\nbundle.json: OK\n']);
  });

  test.skipIf(missing.length > 0)(
    'confirm a bundle that was signed together with others, and refuse it at another place',
    async () => {
      const others = await Promise.all(
        ['2', '3', '4', '5'].map((last) => sealedBundle({ runId: `run_0000000${last}` })),
      );
      const { document, envelope } = await inBatch(await sealedBundle(), others, { at: 4 });
      put('bundle.json', document);
      put('bundle.dsse.json', envelope);
      put('key.pem', SIGNER.publicKey.export({ type: 'spki', format: 'pem' }));
      const { status, stdout, stderr } = run(`${proof}\n${batch}\n${chain}`);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(stdout).toMatch(
        /^Signature Verified Successfully\nbundle.json: OK\nin the batch: OK\nchain of \d+ commits: OK\n$/,
      );
      put('bundle.dsse.json', String(envelope).replace('"index":4', '"index":3'));
      expect(run(`${proof}\n${batch}`)).toMatchObject({ status: 1, stdout: expect.stringContaining('batch: FAILED') });
    },
  );

  test.skipIf(missing.length > 0)('find the commit that was edited', () => {
    expect(run(proof).status).toBe(0);
    put('bundle.json', vectors.document.replace('["ben","cleo"]', '["ben","mallory"]'));
    expect(run(chain)).toMatchObject({ status: 1, stdout: 'commit 6: FAILED\n' });
  });
});
