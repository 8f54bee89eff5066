import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { equalInConstantTime } from '../../lambdas/entry/constant-time.ts';
import { isSigned } from '../../lambdas/intake/signature.ts';

describe('equality in constant time', () => {
  it.each([
    ['', '', true],
    ['a', 'a', true],
    ['a', 'b', false],
    ['a', 'aa', false],
    ['', 'a', false],
    ['ä', 'a', false],
  ])('of "%s" and "%s" is %s, for any lengths', (a, b, equal) => {
    expect(equalInConstantTime(a, b)).toBe(equal);
  });
});

describe('a GitHub signature', () => {
  // The vector of GitHub's documentation.
  const secret = "It's a Secret to Everybody";
  const body = Buffer.from('Hello, World!');
  const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';

  const holds = (secrets: string[], bytes: Buffer, given: string | undefined) =>
    isSigned('github', secrets, bytes, { 'x-hub-signature-256': given }, Date.now());

  it('holds for the documented vector', () => {
    expect(holds([secret], body, signature)).toBe(true);
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
    expect(holds([secret], body, given)).toBe(false);
  });

  it('holds for both secrets during a rotation', () => {
    expect(holds(['a-new-secret-of-acme', secret], body, signature)).toBe(true);
    expect(holds([secret, 'an-old-secret-of-acme'], body, signature)).toBe(true);
    expect(holds(['a-new-secret-of-acme', 'an-old-secret-of-acme'], body, signature)).toBe(false);
  });

  it('never holds for a tenant without secrets, not even with the unused key', () => {
    const forged = `sha256=${createHmac('sha256', 'no-such-tenant').update(body).digest('hex')}`;
    expect(holds([], body, forged)).toBe(false);
  });

  it('covers the bytes as sent: the same JSON in another form is rejected', () => {
    const sent = Buffer.from('{"a":  1, "b":"\\u00e4"}');
    const given = `sha256=${createHmac('sha256', secret).update(sent).digest('hex')}`;
    expect(holds([secret], sent, given)).toBe(true);
    expect(holds([secret], Buffer.from(JSON.stringify(JSON.parse(sent.toString()))), given)).toBe(false);
  });
});

describe('a Standard Webhooks signature', () => {
  // The vector of the Standard Webhooks reference libraries.
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const body = Buffer.from('{"test": 2432232314}');
  const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
  const given = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: '1614265330', signature };
  const then = 1_614_265_330_000;
  const FIVE_MINUTES_MS = 300_000;
  const OTHER = `whsec_${Buffer.alloc(24, 'new').toString('base64')}`;

  const holds = (differing: Partial<typeof given> = {}, nowMs = then, secrets = [secret], bytes = body) => {
    const { id, timestamp, signature } = { ...given, ...differing };
    const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
    return isSigned('servicenow', secrets, bytes, headers, nowMs);
  };

  it('holds for the reference vector', () => {
    expect(holds()).toBe(true);
  });

  it('holds for a secret that is not base64', () => {
    const mac = createHmac('sha256', 'a-plain-secret-of-acme').update(`${given.id}.${given.timestamp}.`).update(body);
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

  it('holds in a list of signatures, and for both secrets during a rotation', () => {
    expect(holds({ signature: `v1,AAAA v1a,BBBB ${signature}` })).toBe(true);
    expect(holds({}, then, [OTHER, secret])).toBe(true);
    expect(holds({}, then, [OTHER])).toBe(false);
  });

  it.each(['whsec_', 'whsec_!!!!', 'whsec_ ', 'whsec_bmV3', `${secret}=`, ` ${secret}`, '', 'short'])(
    'never holds for the malformed secret "%s", not even with its decodable part',
    (malformed) => {
      for (const key of ['', malformed, Buffer.from(malformed.replace('whsec_', ''), 'base64')]) {
        const mac = createHmac('sha256', key).update(`${given.id}.${given.timestamp}.`).update(body);
        const forged = `v1,${mac.digest('base64')}`;
        expect(holds({ signature: forged }, then, [malformed])).toBe(false);
        expect(holds({}, then, [malformed, secret])).toBe(true);
      }
    },
  );

  it('covers the bytes as sent, and never holds for a tenant without secrets', () => {
    expect(holds({}, then, [secret], Buffer.from('{"test":2432232314}'))).toBe(false);
    expect(holds({}, then, [])).toBe(false);
  });
});

describe('a Slack signature', () => {
  // The vector of Slack's documentation.
  const secret = '8f742231b10e8888abcd99yyyzzz85a5';
  const body = Buffer.from(
    'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
  );
  const signature = 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503';
  const given = { timestamp: '1531420618', signature };
  const then = 1_531_420_618_000;
  const FIVE_MINUTES_MS = 300_000;

  const holds = (differing: Partial<typeof given> = {}, nowMs = then, secrets = [secret], bytes = body) =>
    isSigned('slack', secrets, bytes, headersOf({ ...given, ...differing }), nowMs);
  const headersOf = ({ timestamp, signature }: typeof given) => ({
    'x-slack-request-timestamp': timestamp,
    'x-slack-signature': signature,
  });

  it('holds for the documented vector', () => {
    expect(holds()).toBe(true);
  });

  it.each([-FIVE_MINUTES_MS, 0, FIVE_MINUTES_MS])('holds %i ms from its time', (offMs) => {
    expect(holds({}, then + offMs)).toBe(true);
  });

  it.each([-FIVE_MINUTES_MS - 1, FIVE_MINUTES_MS + 1])(
    'is refused %i ms from its time, in both directions',
    (offMs) => {
      expect(holds({}, then + offMs)).toBe(false);
    },
  );

  it.each([
    ['another timestamp', { timestamp: '1531420619' }],
    ['a timestamp that is no number', { timestamp: '1531420618.0' }],
    ['no timestamp', { timestamp: '' }],
    ['no signature', { signature: '' }],
    ['a signature cut short', { signature: signature.slice(0, -1) }],
    ['a signature that is too long', { signature: `${signature}0` }],
    ['a signature without its version', { signature: signature.slice(3) }],
    ['a signature in capitals', { signature: signature.toUpperCase() }],
  ])('is refused with %s', (_what, differing) => {
    expect(holds(differing)).toBe(false);
  });

  it('is refused without its headers', () => {
    expect(isSigned('slack', [secret], body, {}, then)).toBe(false);
  });

  it('holds for both secrets during a rotation, and not for the old one afterwards', () => {
    expect(holds({}, then, ['new', secret])).toBe(true);
    expect(holds({}, then, [secret, 'old'])).toBe(true);
    expect(holds({}, then, ['new'])).toBe(false);
  });

  it('covers the bytes as sent: the same form in another encoding is rejected', () => {
    const rewritten = Buffer.from(new URLSearchParams(body.toString().replace('&text=&', '&text=+&')).toString());
    expect(holds({}, then, [secret], rewritten)).toBe(false);
  });

  it('never holds for a workspace without secrets, not even with the unused key', () => {
    const forged = `v0=${createHmac('sha256', 'no-such-workspace').update(`v0:1531420618:${body}`).digest('hex')}`;
    expect(holds({ signature: forged }, then, [])).toBe(false);
  });
});
