import { afterEach, describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import type { Access } from '../../lambdas/connectors/connector.ts';
import { exchange, redactSecrets } from '../../lambdas/connectors/exchange.ts';
import { sendEvent } from '../../lambdas/connectors/pagerduty/events.ts';

const TOKEN = 'canary-"token"-1234';
const PASSWORD = 'canary-password';
const BASIC = `Basic ${Buffer.from(`countersign:${PASSWORD}`).toString('base64')}`;

afterEach(() => vi.unstubAllGlobals());

const answers = (body: unknown) => vi.stubGlobal('fetch', async () => new Response(JSON.stringify(body)));

const asked = (authorization: string) =>
  exchange({ system: 'X', method: 'POST', url: 'http://x', headers: { authorization }, responseSchema: z.json() });

describe('an echoed secret is redacted', () => {
  it.each([
    ['a token', `Bearer ${TOKEN}`, TOKEN],
    ['the whole header', `Bearer ${TOKEN}`, `Bearer ${TOKEN}`],
    ['what Basic wraps', BASIC, BASIC.slice('Basic '.length)],
    ['the name with the password', BASIC, `countersign:${PASSWORD}`],
    ['the password', BASIC, PASSWORD],
  ])('%s', async (_what, authorization, echo) => {
    answers({ name: `you sent ${echo}, did you`, inner: [{ [echo]: 1 }] });
    const { body } = await asked(authorization);
    expect(body).toEqual({ name: 'you sent [secret], did you', inner: [{ '[secret]': 1 }] });
  });

  it('the routing key of PagerDuty, which is in the body', async () => {
    const routingKey = 'canary-routing-key'.padEnd(32, '0');
    answers({ status: 'success', dedup_key: routingKey });
    const access: Access = { baseUrl: 'http://x', instance: 'acme', credential: { routingKey } };
    const input = sendEvent.parse({ action: 'resolve', dedupKey: 'printer' });
    const result = await sendEvent.perform(input, { access, mark: 'm', openSince: '2026-01-01T00:00:00.000Z' });
    expect(JSON.stringify(result)).not.toContain('canary');
  });

  it('and nothing else is changed', async () => {
    const said = { name: 'Bearer of news', labels: ['Basic', ''] };
    answers(said);
    expect((await asked('Bearer x')).body).toEqual(said);
    expect(redactSecrets('a short key of one', ['key'])).toBe('a short key of one');
  });
});
