import { generateKeyPairSync } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { parseConfig } from '../../agent/config.ts';
import { fingerprintOf, type VerifyContext, verifyAssignment } from '../../agent/verify-assignment.ts';
import type { AssignmentStatement } from '../../lambdas/agents/protocol.ts';
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
