import * as fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { signedHeaders } from '../../bin/commands/webhook/sign-delivery.ts';
import { isSigned } from '../../lambdas/intake/signature.ts';

const secrets = fc
  .uint8Array({ minLength: 24, maxLength: 64 })
  .map((bytes) => `whsec_${Buffer.from(bytes).toString('base64')}`);
const ids = fc.stringMatching(/^[a-zA-Z0-9_-]{1,60}$/);
const bodies = fc.json();
const times = fc.integer({ min: 1_700_000_000, max: 2_000_000_000 });

const headersOf = (id: string, seconds: number, signature: string) => ({
  'webhook-id': id,
  'webhook-timestamp': String(seconds),
  'webhook-signature': signature,
});

describe('a signature of the Standard Webhooks library', () => {
  it('is accepted for any id, time and body', () => {
    fc.assert(
      fc.property(secrets, ids, bodies, times, (secret, id, body, seconds) => {
        const signature = new Webhook(secret).sign(id, new Date(seconds * 1000), body);
        const headers = headersOf(id, seconds, signature);
        expect(isSigned('servicenow', [secret], Buffer.from(body), headers, seconds * 1000)).toBe(true);
      }),
    );
  });

  it('is refused with another secret, id, time or body', () => {
    fc.assert(
      fc.property(secrets, secrets, ids, bodies, times, (secret, other, id, body, seconds) => {
        fc.pre(secret !== other);
        const signature = new Webhook(secret).sign(id, new Date(seconds * 1000), body);
        const headers = headersOf(id, seconds, signature);
        const holds = (change: object, by = secret, text = body) =>
          isSigned('servicenow', [by], Buffer.from(text), { ...headers, ...change }, seconds * 1000);
        expect(holds({}, other)).toBe(false);
        expect(holds({ 'webhook-id': `${id}x` })).toBe(false);
        expect(holds({ 'webhook-timestamp': String(seconds + 1) })).toBe(false);
        expect(holds({}, secret, `${body} `)).toBe(false);
      }),
    );
  });
});

it('the library accepts the signature of `countersign webhook send`', () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const body = '{"number":"INC0010001"}';
  // The library uses the clock of the machine.
  const headers = signedHeaders('servicenow', Buffer.from(body), { secret, event: '', nowMs: Date.now() });
  expect(new Webhook(secret).verify(body, headers)).toEqual({ number: 'INC0010001' });
});
