import { createPublicKey } from 'node:crypto';
import { KMSClient } from '@aws-sdk/client-kms';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildDayLog, documentOf, logClaim } from '../../../lambdas/evidence/daily-log/daily-log.ts';
import { signClaim } from '../../../lambdas/evidence/signing/dsse.ts';
import { KmsPublicKeys, KmsSigner } from '../../../lambdas/evidence/signing/kms-signer.ts';
import { publishedKeys } from '../../../lambdas/evidence/signing/published-keys.ts';
import { respondToStack } from '../../../lambdas/evidence/signing/stack-key.ts';
import type { PublishedKey } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { trustedKeys } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { readLog } from '../../../lambdas/evidence/verify/verify-daily-log.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { StageConfig } from '../../../lib/stage-config.ts';
import { LocalKms } from '../../../local/cloud/kms.ts';
import { openWire, temporaryFolder, type Wire } from '../../local/cloud/wire.ts';

const arn = (id: string) => `arn:aws:kms:us-east-1:000000000000:key/${id}`;
const FORMER = arn('former');
const CURRENT = arn('current');

const folder = temporaryFolder();
let wire: Wire;
let kms: KMSClient;
let keys: PublishedKey[];

beforeAll(async () => {
  const signing = (id: string, keySpec: string) => ({ id, arn: arn(id), keySpec, keyUsage: 'SIGN_VERIFY' });
  const both = [signing('former', 'ECC_NIST_P256'), signing('current', 'ECC_NIST_EDWARDS25519')];
  wire = await openWire({ json: { TrentService: new LocalKms({ dataFolder: folder.path, keys: both }) } });
  kms = new KMSClient(wire.client);
  const evidenceKeys = [
    { keyId: FORMER, validUntil: '2026-02-28' },
    { keyId: CURRENT, validUntil: null },
  ];
  ({ keys } = await publishedKeys(evidenceKeys, new KmsPublicKeys(kms)));
});
afterAll(async () => {
  kms.destroy();
  await wire.close();
  folder.remove();
});

describe('the published keys', () => {
  it('are the current and the former keys, each with algorithm, validity and PEM', () => {
    expect(keys).toEqual([
      {
        keyId: FORMER,
        validUntil: '2026-02-28',
        algorithm: 'ECDSA P-256 with SHA-256',
        fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
        pem: expect.stringMatching(/^-----BEGIN PUBLIC KEY-----\n[\s\S]+\n-----END PUBLIC KEY-----\n$/),
      },
      expect.objectContaining({ keyId: CURRENT, validUntil: null, algorithm: 'Ed25519' }),
    ]);
    for (const { pem, fingerprint } of keys) {
      expect(sha256Hex(createPublicKey(pem).export({ type: 'spki', format: 'der' }))).toBe(fingerprint);
    }
  });

  it('verify what each of them signed, before and after a rotation', async () => {
    const trusted = trustedKeys(keys.map(({ pem }) => pem).join(''));
    const log = buildDayLog({ tenant: 'acme', day: '2026-02-27', previous: null, entries: [] });
    const document = documentOf(log);
    for (const [keyId, algorithm] of [
      [FORMER, 'ECDSA_SHA_256'],
      [CURRENT, 'ED25519_SHA_512'],
    ] as const) {
      const stage = { SIGNING_KEY_ARN: keyId, SIGNING_ALGORITHM: algorithm, EVIDENCE_KEYS: [] };
      const signer = new KmsSigner(kms, stage);
      const envelope = await signClaim(logClaim(log, sha256Hex(document)), signer);
      const held = { tenant: 'acme', name: '2026-02-27', document, envelope };
      expect(readLog(held, trusted)).not.toHaveProperty('problem');
      const others = trusted.filter((_, index) => keys[index]?.keyId !== keyId);
      expect(readLog(held, others)).toMatchObject({ problem: 'its log is not signed by that key' });
    }
  });

  it('are returned completely or not at all: a key that KMS does not have is an error', async () => {
    const unknown = [{ keyId: arn('unknown'), validUntil: null }];
    await expect(publishedKeys(unknown, new KmsPublicKeys(kms))).rejects.toThrow(/does not exist/);
  });
});

describe('the custom resource of the keys', () => {
  const event = {
    RequestType: 'Create' as const,
    ResponseURL: 'https://cloudformation.example.com/answer',
    StackId: 'stack',
    RequestId: 'request',
    LogicalResourceId: 'Key',
    ResourceProperties: { KeyIds: [FORMER, CURRENT] },
  };
  const asked = { StackId: 'stack', RequestId: 'request', LogicalResourceId: 'Key' };

  it('has PEM and fingerprint of each key as they are published, in a response of less than 4 KB', async () => {
    const [former, current] = [FORMER, CURRENT].map((id) => keys.find(({ keyId }) => keyId === id));
    expect(await respondToStack(event, new KmsPublicKeys(kms))).toEqual({
      ...asked,
      PhysicalResourceId: 'evidence-keys',
      Status: 'SUCCESS',
      Data: {
        ...{ Pem0: former?.pem, Fingerprint0: former?.fingerprint },
        ...{ Pem1: current?.pem, Fingerprint1: current?.fingerprint },
      },
    });
    const ten = { ...event, ResourceProperties: { KeyIds: Array.from({ length: 10 }, () => FORMER) } };
    expect(JSON.stringify(await respondToStack(ten, new KmsPublicKeys(kms))).length).toBeLessThan(4_096);
  });

  it('sends a response also after a failure, and can always be deleted', async () => {
    const unknown = { ...event, ResourceProperties: { KeyIds: [arn('unknown')] } };
    expect(await respondToStack(unknown, new KmsPublicKeys(kms))).toMatchObject({
      ...asked,
      Status: 'FAILED',
      Reason: expect.stringMatching(/does not exist/),
    });
    const earlier = { ...unknown, RequestType: 'Delete' as const, PhysicalResourceId: FORMER };
    const removed = await respondToStack(earlier, new KmsPublicKeys(kms));
    expect(removed).toMatchObject({ Status: 'SUCCESS', PhysicalResourceId: FORMER });
  });
});

describe('a stage', () => {
  const stage = (evidenceKeys?: object[]) =>
    StageConfig.safeParse({ kind: 'dev', tenants: ['acme'], evidenceRetentionDays: 1, evidenceKeys });

  it('signs with one Ed25519 key by default', () => {
    expect(stage().data?.evidenceKeys).toEqual([{ name: 'first', algorithm: 'ed25519' }]);
  });

  it('rotates its key with a new entry and the retirement day of the previous one', () => {
    const rotated = [
      { name: 'first', retiredOn: '2026-06-30' },
      { name: 'second', algorithm: 'p256', retiredOn: '2027-06-30' },
      { name: 'third' },
    ];
    expect(stage(rotated).success).toBe(true);
  });

  it.each([
    ['no key', []],
    ['two keys that would both sign', [{ name: 'first' }, { name: 'second' }]],
    ['no key that signs', [{ name: 'first', retiredOn: '2026-06-30' }]],
    ['two keys of one name', [{ name: 'first', retiredOn: '2026-06-30' }, { name: 'first' }]],
    [
      'keys out of order',
      [{ name: 'first', retiredOn: '2027-06-30' }, { name: 'second', retiredOn: '2026-06-30' }, { name: 'third' }],
    ],
    ['an algorithm nobody verifies', [{ name: 'first', algorithm: 'rsa' }]],
  ])('is refused with %s', (_what, evidenceKeys) => {
    expect(stage(evidenceKeys).success).toBe(false);
  });
});
