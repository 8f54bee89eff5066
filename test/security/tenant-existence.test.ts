import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { callerWithKey } from '../../lambdas/api/authorizer/api-keys.ts';
import { type HttpEvent, Problem } from '../../lambdas/entry/http.ts';
import { SecretsSigningSecrets } from '../../lambdas/intake/secrets-signing-secrets.ts';
import { anyKeyMatches } from '../../lambdas/intake/signature.ts';
import { receiveWebhook } from '../../lambdas/intake/webhook.ts';
import { handleCommand } from '../../lambdas/slack/handle-command.ts';
import { TeamTenants } from '../../lambdas/slack/request/team-tenants.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryApiKeys } from '../fakes/memory/memory-api-keys.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';

const SECRET_IDS = { acme: 'countersign/test/acme/webhook-signing', globex: 'countersign/test/globex/webhook-signing' };
const CACHED_MS = 60_000;

let clock: FakeClock;
let secrets: SecretsSigningSecrets;
/** The requests of the real AWS client, in order. */
let calls: string[];
let aws: Server;
beforeEach(async () => {
  clock = new FakeClock();
  calls = [];
  aws = createServer((request, response) => {
    calls.push(String(request.headers['x-amz-target']));
    response.end(JSON.stringify({ SecretString: '{"github":["a-secret-of-github"],"slack":["a-secret-of-slack"]}' }));
  });
  await new Promise<void>((resolve) => aws.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${(aws.address() as AddressInfo).port}`;
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
  const client = new SecretsManagerClient({ region: 'eu-central-1', endpoint, credentials });
  secrets = new SecretsSigningSecrets(client, SECRET_IDS, () => clock.now(), new MemoryLog());
});
afterEach(() => {
  aws.closeAllConnections();
  aws.close();
});

/** The response, and the requests to AWS. */
async function seen(act: () => Promise<unknown>): Promise<{ answer: unknown; calls: string[] }> {
  calls = [];
  const answer = await act().then(
    (value) => value,
    (error: unknown) => (error instanceof Problem ? [error.status, error.code, error.message] : error),
  );
  return { answer, calls };
}

const webhook = (tenant: string) =>
  receiveWebhook(
    { secrets, clock, log: new MemoryLog() } as never,
    {
      source: 'github',
      delivery: () => {
        throw new Error('nothing unsigned is read');
      },
    },
    { pathParameters: { tenant }, headers: { 'x-hub-signature-256': 'sha256=00' }, body: '{}' } as unknown as HttpEvent,
  );

const slack = (team: string) => {
  const connections: Record<string, string> = { acme: 'T1', globex: 'T2' };
  const reads = {
    connection: async (tenant: string) => ({ name: 'slack', baseUrl: '', instance: connections[tenant] ?? '' }),
  };
  const teams = new TeamTenants(Object.keys(SECRET_IDS), reads, () => clock.now());
  const body = new URLSearchParams({ team_id: team, user_id: 'U1', text: 'pending' }).toString();
  const event = { headers: { 'x-slack-signature': 'v0=00', 'x-slack-request-timestamp': '1' }, body };
  return handleCommand({ teams, secrets, clock, log: new MemoryLog() } as never, event as unknown as HttpEvent);
};

describe.each([
  ['a webhook', webhook, 'acme', 'nobody'],
  ['a request of Slack', slack, 'T1', 'T9'],
])('%s with a wrong signature', (_what, ask, known, unknown) => {
  it('makes the same requests to AWS and gets the same response for existing and unknown tenants', async () => {
    for (const wait of [0, 0, CACHED_MS]) {
      clock.advance(wait);
      const existing = await seen(() => ask(known));
      const missing = await seen(() => ask(unknown));
      expect(missing).toEqual(existing);
    }
    // There is a difference to hide: the first request reads a secret, and the second one does not.
    clock.advance(CACHED_MS);
    expect((await seen(() => ask(known))).calls).toEqual(['secretsmanager.GetSecretValue']);
    expect((await seen(() => ask(known))).calls).toEqual([]);
  });

  it('makes the same requests for unknown and known names, also the second time', async () => {
    await seen(() => ask(unknown));
    expect((await seen(() => ask(`${unknown}2`))).calls).toEqual(['secretsmanager.GetSecretValue']);
  });
});

it.each([[[]], [['one'.repeat(9)]], [['one'.repeat(9), 'two'.repeat(9)]]])(
  'of %j as many secrets are compared',
  (known) => {
    let compared = 0;
    const count = () => {
      compared += 1;
      return false;
    };
    expect(anyKeyMatches('github', known, count)).toBe(false);
    expect(compared).toBe(2);
  },
);

it('a signature with the unused key is never accepted', () => {
  expect(anyKeyMatches('github', [], () => true)).toBe(false);
});

it('an unknown API key causes the same reads as a known one', async () => {
  const keys = new MemoryApiKeys();
  await keys.save('a-key', { tenant: 'acme', person: 'ana', role: 'member' });
  const reads: string[] = [];
  const counted = new Proxy(new MemoryDefinitions(), {
    get: (target, name: keyof MemoryDefinitions) => {
      reads.push(name);
      return target[name].bind(target);
    },
  });
  const clock = new FakeClock();
  await expect(callerWithKey({ keys, definitions: counted, clock }, 'a-key')).rejects.toThrow('is not a person');
  const known = reads.splice(0);
  await expect(callerWithKey({ keys, definitions: counted, clock }, 'another-key')).rejects.toThrow('does not exist');
  expect(reads).toEqual(known);
});
