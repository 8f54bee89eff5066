import { verify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { bundleClaim } from '../../../lambdas/evidence/bundle/bundle-claim.ts';

import type { EvidenceDocument } from '../../../lambdas/evidence/bundle/document.ts';
import { described } from '../../../lambdas/evidence/bundle/entry-parts.ts';
import { preAuthEncoding, signClaim } from '../../../lambdas/evidence/signing/dsse.ts';
import { canonicalJson, hashOf, sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import type { Receipt, SucceededReceipt } from '../../../lambdas/run/receipt.ts';
import { SeededSigner } from '../../fakes/seeded-signer.ts';
import { type BundleContents, builtDocument } from './built-bundle.ts';
import { GovernedStory, TEXT_CANARIES } from './governed-story.ts';

const { contents } = new GovernedStory();
const bundle = builtDocument(contents);
const text = bundle.toString();
const document: EvidenceDocument = JSON.parse(text);
const documentOf = (changes: Partial<BundleContents>): EvidenceDocument =>
  JSON.parse(builtDocument({ ...contents, ...changes }).toString());

describe('an evidence document', () => {
  it('has the run, its trigger, its steps and how they ended', () => {
    expect(document).toMatchObject({
      format: 'countersign.evidence/2',
      run: {
        tenant: 'acme',
        runId: 'run_00000001',
        status: 'failed_terminal',
        workflow: { name: 'triage-incident', version: 3 },
        error: { code: 'TARGET_REFUSED' },
        rollback: { endsAs: 'failed_terminal', actor: 'worker' },
        compensation: [{ step: 'assign', outcome: 'reversed' }],
      },
      trigger: { source: 'github', event: 'issues.opened', payload: { sha256: hashOf(contents.trigger.payload) } },
      head: { hash: contents.run.headHash, count: contents.run.seq },
    });
    expect(document.steps.map(({ id, status, undoes }) => [id, status, undoes])).toEqual([
      ['classify', 'succeeded', undefined],
      ['assign', 'rolled_back', undefined],
      ['post', 'failed_terminal', undefined],
      ['undo_assign', 'succeeded', 1],
    ]);
    expect(document.commits.map(({ hash }) => hash)).toEqual(contents.commits.map(({ hash }) => hash));
  });

  it('has every policy decision with its grounds and its commit', () => {
    expect(document.decisions).toHaveLength(6);
    expect(document.decisions[1]).toEqual({
      commit: 3,
      step: 'assign',
      index: 1,
      tool: 'servicenow.incident.update',
      target: 'servicenow:acme:incident:6dbb1847acd165f19a4179377de298c8',
      verdict: 'needs_approval',
      policyHash: sha256Hex('policies of acme'),
      policies: ['writes'],
      reasons: ['needs_approval in prod'],
      actionHash: sha256Hex('before the edit'),
      tier: 'medium',
      quorum: 2,
      groups: [['dba']],
    });
  });

  it('has the approvers, their votes with channels, and the edits', () => {
    expect(document.approvals).toHaveLength(1);
    expect(document.approvals[0]).toMatchObject({
      step: 'assign',
      status: 'approved',
      requirement: { tier: 'medium', quorum: 2, groups: [['dba']] },
      grounds: { reasons: ['needs_approval in prod'] },
      makers: ['olga', 'dora'],
      votes: [
        { person: 'ben', via: 'slack', decision: 'approve', reason: { sha256: sha256Hex('CANARY-reason'), bytes: 13 } },
        { person: 'cleo', via: 'slack', decision: 'approve' },
      ],
      edits: [
        {
          person: 'dora',
          via: 'slack',
          changes: [{ field: 'assignment_group', from: { sha256: hashOf('CANARY-before') }, to: { bytes: 14 } }],
        },
      ],
      action: {
        target: document.receipts[1]?.target,
        fields: { assignment_group: { sha256: hashOf('CANARY-value') } },
      },
    });
  });

  it('has each write with its grounds, its outcome and its reversal', () => {
    expect(document.receipts.map(({ step, outcome }) => [step, outcome])).toEqual([
      ['classify', 'succeeded'],
      ['assign', 'reversed'],
      ['post', 'failed'],
      ['undo_assign', 'succeeded'],
    ]);
    expect(document.receipts[1]).toMatchObject({
      fields: ['assignment_group'],
      requestHash: hashOf({ assignment_group: 'CANARY-value' }),
      grounds: { policyHash: sha256Hex('policies of acme') },
      before: { sha256: hashOf({ assignment_group: 'CANARY-before' }) },
      reversal: { tool: 'servicenow.incident.update', expects: { sha256: hashOf({ is: 'CANARY-value' }) } },
      reversedBy: document.receipts[3]?.key,
    });
    expect(document.receipts[2]?.error).toEqual({
      code: 'TARGET_REFUSED',
      message: { sha256: sha256Hex('Slack says: CANARY-error'), bytes: 24 },
    });
  });

  it('names the versions of workflow, policies and runtime', () => {
    expect(document.versions).toEqual({
      runtime: expect.stringMatching(/^\d+\.\d+\.\d+/),
      workflow: { name: 'triage-incident', version: 3 },
      policies: [sha256Hex('policies of acme')],
    });
  });

  it('contains metadata only, and no text of people, systems or secrets', () => {
    expect(TEXT_CANARIES.filter((canary) => JSON.stringify(contents).includes(canary))).toEqual(TEXT_CANARIES);
    expect(TEXT_CANARIES.filter((canary) => text.includes(canary))).toEqual([]);
  });

  it('is canonical, and the same at every build', () => {
    expect(canonicalJson(JSON.parse(text))).toBe(text);
    const again = builtDocument(JSON.parse(JSON.stringify(contents)));
    expect(again.equals(bundle)).toBe(true);
  });
});

describe('the model cost of a run', () => {
  const [classify] = contents.receipts as [SucceededReceipt];
  const call = (key: string, usd?: number, runId = classify.runId): SucceededReceipt => ({
    ...classify,
    key,
    runId,
    cost: { provider: 'bedrock', model: 'claude', inputTokens: 10, outputTokens: 1, ...(usd !== undefined && { usd }) },
  });

  it('is summed by provider and model over its own calls', () => {
    const mini: Receipt = {
      ...call('d'),
      cost: { provider: 'bedrock', model: 'mini', inputTokens: 5, outputTokens: 5 },
    };
    const { cost } = documentOf({ receipts: [call('a', 0.25), call('b', 0.5), mini, call('c', 8, 'run_00000009')] });
    expect(cost).toEqual([
      { provider: 'bedrock', model: 'claude', calls: 2, inputTokens: 20, outputTokens: 2, usd: 0.75 },
      { provider: 'bedrock', model: 'mini', calls: 1, inputTokens: 5, outputTokens: 5 },
    ]);
  });

  it.each([
    ['first', [undefined, 0.5, 0.5]],
    ['last', [0.5, 0.5, undefined]],
  ])('has no price when the %s call has none: half a sum would mislead', (_which, prices) => {
    const { cost } = documentOf({ receipts: prices.map((usd, index) => call(String(index), usd)) });
    expect(cost).toEqual([{ provider: 'bedrock', model: 'claude', calls: 3, inputTokens: 30, outputTokens: 3 }]);
  });
});

describe('the minimum number of AWS requests of a run', () => {
  it.each(['remindedAt', 'escalatedAt'] as const)(
    'is a transaction for each commit, an execution for each approval with %s, and every call of a model',
    (notified) => {
      const approvals = contents.approvals.map((approval) => ({ ...approval, [notified]: approval.requestedAt }));
      expect(documentOf({ approvals }).awsRequestsAtLeast).toEqual({
        'dynamodb.TransactWriteItems': contents.commits.length,
        'states.StartExecution': 1,
        'bedrock.Converse': 1,
      });
    },
  );

  it('counts no execution for an approval that was decided before its first reminder', () => {
    expect(document.approvals).toHaveLength(1);
    expect(document.awsRequestsAtLeast).not.toHaveProperty('states.StartExecution');
  });

  it('counts only requests that the rows prove', () => {
    expect(documentOf({ approvals: [], receipts: [] }).awsRequestsAtLeast).toEqual({
      'dynamodb.TransactWriteItems': contents.commits.length,
    });
  });
});

describe('the shape of a value', () => {
  it('has the field names of the workflow or connector at the top, and below only types and sizes', () => {
    expect(
      described({ sysId: 'abc', fields: { 'CANARY name': 1 }, list: [1, 2], on: true, off: null }, 'ours').shape,
    ).toEqual({
      type: 'object',
      size: 5,
      properties: {
        sysId: { type: 'string', length: 3 },
        fields: { type: 'object', size: 1 },
        list: { type: 'array', items: 2 },
        on: { type: 'boolean' },
        off: { type: 'null' },
      },
    });
  });

  it.each<[string, unknown, unknown]>([
    ['what came from outside', { 'ana@example.com': 1 }, { type: 'object', size: 1 }],
    ['a text', 'secret', { type: 'string', length: 6 }],
    ['a number', 4, { type: 'number' }],
  ])('of %s shows no name', (_what, value, shape) => {
    expect(described(value, 'foreign').shape).toEqual(shape);
  });

  it('omits texts that are no field names, and all names if there are too many', () => {
    expect(described({ 'ana@example.com': 1, ok: 1 }, 'ours').shape).toMatchObject({
      size: 2,
      properties: { ok: { type: 'number' } },
    });
    const many = Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`name${index}`, index]));
    expect(described(many, 'ours').shape).toEqual({ type: 'object', size: 51 });
  });
});

describe('a signed envelope', () => {
  it('names the run, its document, its head and the index of its entries, and verifies with the public key alone', async () => {
    const signer = new SeededSigner();
    const envelope = JSON.parse((await signClaim(bundleClaim(bundle), signer)).toString());
    const payload = Buffer.from(envelope.payload, 'base64');
    expect(JSON.parse(payload.toString())).toEqual({
      _type: 'https://in-toto.io/Statement/v1',
      subject: [{ name: 'acme/run_00000001', digest: { sha256: sha256Hex(bundle) } }],
      predicateType: 'https://countersign.dev/evidence/v1',
      predicate: {
        head: contents.run.headHash,
        count: contents.run.seq,
        status: 'failed_terminal',
        index: hashOf(document.index),
        keyId: signer.keyId,
      },
    });
    const [{ keyid, sig }] = envelope.signatures;
    const signed = preAuthEncoding(envelope.payloadType, payload);
    expect(keyid).toBe(signer.keyId);
    expect(verify(null, signed, signer.publicKey, Buffer.from(sig, 'base64'))).toBe(true);
    expect(verify(null, payload, signer.publicKey, Buffer.from(sig, 'base64'))).toBe(false);
  });

  it('is far smaller than the 4,096 bytes that KMS signs, also with the longest names', async () => {
    const arn = `arn:aws:kms:ap-southeast-2:123456789012:key/${'m'.repeat(40)}`;
    const sizes: number[] = [];
    const signer = {
      keyId: arn,
      sign: async (message: Buffer) => {
        sizes.push(message.length);
        return { keyId: arn, signature: Buffer.alloc(64) };
      },
    };
    const long = builtDocument({ ...contents, run: { ...contents.run, tenant: 't'.repeat(200) } });
    await signClaim(bundleClaim(long), signer);
    expect(sizes[0]).toBeLessThan(1_100);
  });

  it('signs the example of the DSSE specification', () => {
    const encoded = preAuthEncoding('http://example.com/HelloWorld', Buffer.from('hello world'));
    expect(encoded.toString()).toBe('DSSEv1 29 http://example.com/HelloWorld 11 hello world');
    expect(preAuthEncoding('ä', Buffer.from('€')).toString()).toBe('DSSEv1 2 ä 3 €');
  });
});
