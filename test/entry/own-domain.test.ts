import { describe, expect, it } from 'vitest';
import { atOwnDomain, ORIGIN_HEADER, refusalOfDirectRequest } from '../../lambdas/entry/own-domain.ts';

const ORIGIN_SECRET = 's'.repeat(48);
const DOMAIN = 'countersign.example.com';

describe('a stage whose requests must pass the firewall', () => {
  it('handles requests that CloudFront sends, with the header in any case', () => {
    expect(refusalOfDirectRequest({ DOMAIN, ORIGIN_SECRET }, { [ORIGIN_HEADER]: ORIGIN_SECRET })).toBeUndefined();
    const sent = { 'X-Countersign-Origin': ORIGIN_SECRET };
    expect(refusalOfDirectRequest({ DOMAIN, ORIGIN_SECRET }, sent)).toBeUndefined();
  });

  it.each([{}, undefined, { [ORIGIN_HEADER]: '' }, { [ORIGIN_HEADER]: `${ORIGIN_SECRET}x` }])(
    'refuses others and says where to send them: %j',
    (headers) => {
      expect(refusalOfDirectRequest({ DOMAIN, ORIGIN_SECRET }, headers)).toContain('https://countersign.example.com');
    },
  );
});

it('a stage without a firewall handles every request', () => {
  expect(refusalOfDirectRequest({ DOMAIN }, {})).toBeUndefined();
  expect(refusalOfDirectRequest({}, {})).toBeUndefined();
});

it('functions see the domain name that the caller used, and not that of the API', () => {
  const event = { requestContext: { domainName: 'abc.execute-api.eu-west-1.amazonaws.com', requestId: '1' } };
  expect(atOwnDomain({ DOMAIN }, event)).toEqual({ requestContext: { domainName: DOMAIN, requestId: '1' } });
  expect(atOwnDomain({}, event)).toBe(event);
});
