import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { parseConfig } from '../../agent/config.ts';
import { fingerprintOf, pinnedAfter, type VerifyContext, verifyAssignment } from '../../agent/verify-assignment.ts';
import { ASSIGNMENT_PAYLOAD_TYPE } from '../../lambdas/agents/agent-terms.ts';
import { introduceKeys } from '../../lambdas/agents/introduce-keys.ts';
import {
  type AssignmentStatement,
  KEY_INTRODUCTION_PAYLOAD_TYPE,
  type SigningKey,
} from '../../lambdas/agents/protocol.ts';
import { AGENT_ID, FakeRuntime, TENANT } from './fake-runtime.ts';

const NOW = Date.parse('2026-11-16T10:00:00Z');
const runtime = new FakeRuntime(() => NOW);
let context: VerifyContext;

beforeEach(() => {
  context = {
    identity: {
      version: 1,
      url: 'https://stage.example',
      agent_id: AGENT_ID,
      tenant: TENANT,
      name: 'demo',
      environments: ['dev', 'staging'],
      network_segment: 'vpc-a',
      signing_keys: runtime.signingKeys,
      enrolled_at: '2026-11-01T00:00:00Z',
    },
    config: parseConfig(
      {
        capabilities: ['ssh'],
        profiles: { 'dev-flex': { allow: [{ executable: '/bin/echo', args: ['hello-*'] }], deny: [] } },
        vault: { address: 'https://vault.example', auth: { appRole: { roleId: 'r', secretIdFile: '/etc/secret' } } },
        credentials: { db: { vault: { kv: 'orders' }, env: { password: 'PGPASSWORD' } } },
      },
      'agent.yaml',
    ),
    profiles: ['dev-flex'],
    now: NOW,
    notBefore: 0,
  };
});

const allowed = (changes: Partial<AssignmentStatement> = {}) =>
  runtime.statement({ command: { executable: '/bin/echo', args: ['hello-you'] }, ...changes });
const verify = (statement: AssignmentStatement, envelope = runtime.envelope(statement)) =>
  verifyAssignment(statement.assignment_id, envelope, context);

describe('an assignment', () => {
  it('is accepted if it is signed for this agent and time, and its lists allow it', () => {
    const statement = allowed({ network_segment: 'vpc-a', capabilities: ['ssh'], credentials: ['db'] });
    expect(verify(statement)).toEqual({ statement });
  });

  it('is refused if another key signed it, or the same key another type of statement', () => {
    const other = generateKeyPairSync('ed25519').privateKey;
    const inToto = { type: 'application/vnd.in-toto+json' };
    for (const envelope of [
      runtime.envelope(allowed(), { key: other }),
      runtime.envelope(allowed(), inToto),
      {},
      null,
    ]) {
      expect(verify(allowed(), envelope)).toMatchObject({ refusal: 'bad_signature' });
    }
  });

  it('is refused if a byte of it was changed', () => {
    const envelope = runtime.envelope(allowed()) as { payload: string };
    const changed = Buffer.from(envelope.payload, 'base64').toString().replace('hello-you', 'hello-me!');
    const forged = { ...envelope, payload: Buffer.from(changed).toString('base64') };
    expect(verify(allowed(), forged)).toMatchObject({ refusal: 'bad_signature', leaseVersion: 1 });
  });

  it.each<[string, Partial<AssignmentStatement>]>([
    ['another tenant', { tenant: 'globex' }],
    ['another agent', { agent_id: 'agt_2' }],
    ['an environment that was not granted', { environment: 'prod', sandbox_profile: 'prod-standard' }],
    ['another network segment', { network_segment: 'vpc-b' }],
  ])('is refused if it is for %s', (_name, changes) => {
    expect(verify(allowed(changes))).toMatchObject({ refusal: 'bad_signature' });
  });

  it('is refused under another id than the signed one', () => {
    const envelope = runtime.envelope(allowed());
    expect(verifyAssignment('run_9.0.1', envelope, context)).toMatchObject({ refusal: 'bad_signature' });
  });

  it('is refused after its time, and if its time has not come', () => {
    const later = new Date(NOW + 3_600_000).toISOString();
    expect(verify(allowed({ start_before: new Date(NOW).toISOString() }))).toMatchObject({ refusal: 'expired' });
    expect(verify(allowed({ issued_at: later, start_before: later }))).toMatchObject({ refusal: 'expired' });
  });

  it('stays expired if the API says that it is earlier than a statement that the agent has seen', () => {
    const old = allowed({ start_before: new Date(NOW + 60_000).toISOString() });
    context.notBefore = NOW + 3_600_000;
    expect(verify(old)).toMatchObject({ refusal: 'expired' });
  });

  it.each<[string, Partial<AssignmentStatement>, string]>([
    ['a command that the local allow list lacks', { command: { executable: '/bin/cat', args: [] } }, 'allow-list'],
    ['arguments that it lacks', { command: { executable: '/bin/echo', args: ['bye'] } }, 'allow-list'],
    ['a path with another form', { command: { executable: '/bin/../bin/echo', args: ['hello-you'] } }, 'executable'],
    ['a profile of another environment', { sandbox_profile: 'staging-standard' }, 'environment'],
  ])('is a violation with %s', (_name, changes, rule) => {
    expect(verify(allowed(changes))).toMatchObject({ refusal: 'violation', rule });
  });

  it.each<[string, Partial<AssignmentStatement>, RegExp]>([
    ['a profile that is not available here', { environment: 'staging', sandbox_profile: 'staging-standard' }, /doctor/],
    ['a capability that is missing', { capabilities: ['oracle'] }, /capability oracle/],
    ['a credential that is missing', { credentials: ['other'] }, /credential other/],
  ])('is refused with %s', (_name, changes, reason) => {
    expect(verify(allowed(changes))).toMatchObject({ refusal: 'unable', reason: expect.stringMatching(reason) });
  });
});

it('the fingerprint of a key is the SHA-256 that the stage publishes', () => {
  const [key] = runtime.signingKeys;
  expect(key && fingerprintOf(key)).toMatch(/^[0-9a-f]{64}$/);
  expect(fingerprintOf({ key_id: 'x', algorithm: 'ed25519', public_key: 'no key' })).toBeUndefined();
});

describe('the introduction of a key', () => {
  const keyOf = (publicKey: KeyObject): SigningKey => ({
    ...{ key_id: 'key', algorithm: 'ed25519' },
    public_key: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
  });
  const [next, stranger] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')];
  const [pinned] = runtime.signingKeys as [SigningKey];
  const introduction = (changes: object = {}) => ({
    ...{ version: 1, key: keyOf(next.publicKey), replaces: fingerprintOf(pinned), issued_at: '2026-11-16T10:00:00Z' },
    ...changes,
  });
  const type = KEY_INTRODUCTION_PAYLOAD_TYPE;
  const pinnedBy = (content: object, options: object = {}) =>
    pinnedAfter(runtime.envelope(content, { type, ...options }), runtime.signingKeys);

  it('by the pinned key replaces it', () => {
    expect(pinnedBy(introduction())).toEqual([keyOf(next.publicKey)]);
  });

  it.each([
    [
      'by a key of another stage',
      introduction({ replaces: fingerprintOf(keyOf(stranger.publicKey)) }),
      { key: stranger.privateKey },
    ],
    ['by an unknown key that names the pinned one', introduction(), { key: stranger.privateKey }],
    ['by the new key itself', introduction(), { key: next.privateKey }],
    ['of another key than its signer', introduction({ replaces: fingerprintOf(keyOf(stranger.publicKey)) }), {}],
    ['that was signed as an assignment', introduction(), { type: ASSIGNMENT_PAYLOAD_TYPE }],
    ['of something that is no key', introduction({ key: { ...keyOf(next.publicKey), public_key: 'AAAA' } }), {}],
    ['of a key with another algorithm', introduction({ key: { ...keyOf(next.publicKey), algorithm: 'p256' } }), {}],
    ['with unknown fields', introduction({ until: 'never' }), {}],
  ])('%s is ignored', (_name, content, options) => {
    expect(pinnedBy(content, options)).toBeUndefined();
  });

  it('that the runtime makes leads from each earlier key to the current one', async () => {
    const pairs = [runtime.signingKey, stranger, next];
    const keys = pairs.map(({ publicKey }, index) => ({ ...keyOf(publicKey), key_id: String(index) }));
    const signerOf = ({ key_id }: SigningKey) => ({
      sign: async (message: Buffer) => ({
        keyId: key_id,
        signature: sign(null, message, pairs[Number(key_id)]?.privateKey as KeyObject),
      }),
    });
    const made = await introduceKeys(keys, signerOf, '2026-11-16T10:00:00.000Z');
    for (const enrolledWith of keys) {
      const ends = made.reduce((now, { envelope }) => pinnedAfter(envelope, now) ?? now, [enrolledWith]);
      expect(ends).toEqual([keys[2]]);
    }
  });
});
