import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { isSignedBySlack } from '../../lambdas/slack/signature.ts';

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
    isSignedBySlack(secrets, bytes, { ...given, ...differing }, nowMs);

  it('holds for the documented vector', () => {
    expect(holds()).toBe(true);
  });

  it.each([-FIVE_MINUTES_MS, 0, FIVE_MINUTES_MS])('holds %i ms from its time', (offMs) => {
    expect(holds({}, then + offMs)).toBe(true);
  });

  it.each([-FIVE_MINUTES_MS - 1, FIVE_MINUTES_MS + 1])('is refused %i ms from its time, either way', (offMs) => {
    expect(holds({}, then + offMs)).toBe(false);
  });

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
    expect(isSignedBySlack([secret], body, { timestamp: undefined, signature: undefined }, then)).toBe(false);
  });

  it('holds by either secret while one is being rotated, and by the old one no longer', () => {
    expect(holds({}, then, ['new', secret])).toBe(true);
    expect(holds({}, then, [secret, 'old'])).toBe(true);
    expect(holds({}, then, ['new'])).toBe(false);
  });

  it('is of the bytes that were sent: the same form written anew is refused', () => {
    const rewritten = Buffer.from(new URLSearchParams(body.toString().replace('&text=&', '&text=+&')).toString());
    expect(holds({}, then, [secret], rewritten)).toBe(false);
  });

  it('never holds for a workspace without secrets, not even one made with the stand-in', () => {
    const forged = `v0=${createHmac('sha256', 'no-such-workspace').update(`v0:1531420618:${body}`).digest('hex')}`;
    expect(holds({ signature: forged }, then, [])).toBe(false);
  });
});
