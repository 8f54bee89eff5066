import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { equalInConstantTime, isSignedAsStandardWebhook, isSignedByGithub } from '../../lambdas/intake/signature.ts';

describe('equality in constant time', () => {
  it.each([
    ['', '', true],
    ['a', 'a', true],
    ['a', 'b', false],
    ['a', 'aa', false],
    ['', 'a', false],
    ['ä', 'a', false],
  ])('of "%s" and "%s" is %s, whatever their lengths', (a, b, equal) => {
    expect(equalInConstantTime(a, b)).toBe(equal);
  });
});

describe('a GitHub signature', () => {
  // The vector of GitHub's documentation.
  const secret = "It's a Secret to Everybody";
  const body = Buffer.from('Hello, World!');
  const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';

  it('holds for the documented vector', () => {
    expect(isSignedByGithub([secret], body, signature)).toBe(true);
  });

  it.each([
    ['missing', undefined],
    ['empty', ''],
    ['cut short', signature.slice(0, -1)],
    ['too long', `${signature}0`],
    ['without its prefix', signature.slice('sha256='.length)],
    ['in capitals', signature.toUpperCase()],
    ['of another algorithm', signature.replace('sha256', 'sha1')],
    ['of another body', 'sha256=0000000000000000000000000000000000000000000000000000000000000000'],
  ])('is refused when it is %s', (_what, given) => {
    expect(isSignedByGithub([secret], body, given)).toBe(false);
  });

  it('holds by either secret while one is being rotated', () => {
    expect(isSignedByGithub(['a-new-secret-of-acme', secret], body, signature)).toBe(true);
    expect(isSignedByGithub([secret, 'an-old-secret-of-acme'], body, signature)).toBe(true);
    expect(isSignedByGithub(['a-new-secret-of-acme', 'an-old-secret-of-acme'], body, signature)).toBe(false);
  });

  it('never holds for a tenant without secrets, not even one made with the stand-in', () => {
    const forged = `sha256=${createHmac('sha256', 'no-such-tenant').update(body).digest('hex')}`;
    expect(isSignedByGithub([], body, forged)).toBe(false);
  });

  it('is of the bytes that were sent: the same JSON written anew is refused', () => {
    const sent = Buffer.from('{"a":  1, "b":"\\u00e4"}');
    const given = `sha256=${createHmac('sha256', secret).update(sent).digest('hex')}`;
    expect(isSignedByGithub([secret], sent, given)).toBe(true);
    expect(isSignedByGithub([secret], Buffer.from(JSON.stringify(JSON.parse(sent.toString()))), given)).toBe(false);
  });
});

describe('a Standard Webhooks signature', () => {
  // The vector of the Standard Webhooks reference libraries.
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const body = Buffer.from('{"test": 2432232314}');
  const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
  const headers = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: '1614265330', signature };
  const then = 1_614_265_330_000;
  const FIVE_MINUTES_MS = 300_000;
  const OTHER = `whsec_${Buffer.alloc(24, 'new').toString('base64')}`;

  const holds = (differing: Partial<typeof headers> = {}, nowMs = then, secrets = [secret]) =>
    isSignedAsStandardWebhook(secrets, body, { ...headers, ...differing }, nowMs);

  it('holds for the reference vector', () => {
    expect(holds()).toBe(true);
  });

  it('holds by a secret that is used as its bytes', () => {
    const mac = createHmac('sha256', 'a-plain-secret-of-acme')
      .update(`${headers.id}.${headers.timestamp}.`)
      .update(body);
    expect(holds({ signature: `v1,${mac.digest('base64')}` }, then, ['a-plain-secret-of-acme'])).toBe(true);
  });

  it.each([-FIVE_MINUTES_MS, 0, FIVE_MINUTES_MS])('holds %i ms from its time', (offMs) => {
    expect(holds({}, then + offMs)).toBe(true);
  });

  it.each([-FIVE_MINUTES_MS - 1, FIVE_MINUTES_MS + 1])('is refused %i ms from its time', (offMs) => {
    expect(holds({}, then + offMs)).toBe(false);
  });

  it.each([
    ['the id', { id: 'msg_other' }],
    ['an empty id', { id: '' }],
    ['the timestamp', { timestamp: '1614265331' }],
    ['a timestamp that is no number', { timestamp: '1614265330.0' }],
    ['no timestamp', { timestamp: '' }],
    ['a signature of another version', { signature: signature.replace('v1,', 'v1a,') }],
    ['no signature', { signature: '' }],
    ['a signature cut short', { signature: signature.slice(0, -1) }],
  ])('is refused with %s', (_what, differing) => {
    expect(holds(differing)).toBe(false);
  });

  it('holds when it stands among others, and by either secret during a rotation', () => {
    expect(holds({ signature: `v1,AAAA v1a,BBBB ${signature}` })).toBe(true);
    expect(holds({}, then, [OTHER, secret])).toBe(true);
    expect(holds({}, then, [OTHER])).toBe(false);
  });

  it.each(['whsec_', 'whsec_!!!!', 'whsec_ ', 'whsec_bmV3', `${secret}=`, ` ${secret}`, '', 'short'])(
    'never holds by the malformed secret "%s", not even one made with what could be decoded of it',
    (malformed) => {
      for (const key of ['', malformed, Buffer.from(malformed.replace('whsec_', ''), 'base64')]) {
        const mac = createHmac('sha256', key).update(`${headers.id}.${headers.timestamp}.`).update(body);
        const forged = `v1,${mac.digest('base64')}`;
        expect(holds({ signature: forged }, then, [malformed])).toBe(false);
        expect(holds({}, then, [malformed, secret])).toBe(true);
      }
    },
  );

  it('is of the bytes that were sent, and never holds for a tenant without secrets', () => {
    expect(isSignedAsStandardWebhook([secret], Buffer.from('{"test":2432232314}'), headers, then)).toBe(false);
    expect(holds({}, then, [])).toBe(false);
  });
});
