import * as fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { signedHeaders } from '../../bin/commands/webhook/sign-delivery.ts';
import { isSignedAsStandardWebhook } from '../../lambdas/intake/signature.ts';

const secrets = fc
  .uint8Array({ minLength: 24, maxLength: 64 })
  .map((bytes) => `whsec_${Buffer.from(bytes).toString('base64')}`);
const ids = fc.stringMatching(/^[a-zA-Z0-9_-]{1,60}$/);
const bodies = fc.json();
const times = fc.integer({ min: 1_700_000_000, max: 2_000_000_000 });

describe('signatures of the Standard Webhooks library', () => {
  it('are taken, whatever is signed', () => {
    fc.assert(
      fc.property(secrets, ids, bodies, times, (secret, id, body, seconds) => {
        const signature = new Webhook(secret).sign(id, new Date(seconds * 1000), body);
        const headers = { id, timestamp: String(seconds), signature };
        expect(isSignedAsStandardWebhook([secret], Buffer.from(body), headers, seconds * 1000)).toBe(true);
      }),
    );
  });

  it('of another secret, id, time or body are refused', () => {
    fc.assert(
      fc.property(secrets, secrets, ids, bodies, times, (secret, other, id, body, seconds) => {
        fc.pre(secret !== other);
        const signature = new Webhook(secret).sign(id, new Date(seconds * 1000), body);
        const headers = { id, timestamp: String(seconds), signature };
        const isSigned = (change: object, by = secret, text = body) =>
          isSignedAsStandardWebhook([by], Buffer.from(text), { ...headers, ...change }, seconds * 1000);
        expect(isSigned({}, other)).toBe(false);
        expect(isSigned({ id: `${id}x` })).toBe(false);
        expect(isSigned({ timestamp: String(seconds + 1) })).toBe(false);
        expect(isSigned({}, secret, `${body} `)).toBe(false);
      }),
    );
  });
});

it('what `countersign webhook send` signs is taken by the library', () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const body = '{"number":"INC0010001"}';
  // The library compares with the clock of the machine.
  const headers = signedHeaders('servicenow', Buffer.from(body), { secret, event: '', nowMs: Date.now() });
  expect(new Webhook(secret).verify(body, headers)).toEqual({ number: 'INC0010001' });
});
