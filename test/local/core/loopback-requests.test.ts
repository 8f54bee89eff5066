import { request as httpRequest } from 'node:http';
import { describe, expect, it } from 'vitest';
import { startHttpServer } from '../../../local/host/http-server.ts';
import { foreignRequest } from '../../../local/host/loopback-requests.ts';

const asked = (headers: Record<string, string>, method = 'POST') => foreignRequest({ headers, method });
const HOST = '127.0.0.1:4000';

describe('a request to the local port', () => {
  it.each([
    ['by address', { host: HOST }],
    ['by name', { host: 'localhost:4000' }],
    ['by its IPv6 address', { host: '[::1]:4000' }],
    ['through a forwarded port', { host: 'localhost:18080' }],
    ['to a bucket before the name', { host: 'evidence.localhost:4000' }],
    ['of its own page', { host: HOST, origin: `http://${HOST}`, 'sec-fetch-site': 'same-origin' }],
    ['typed into the address bar', { host: HOST, 'sec-fetch-site': 'none' }],
    ['of Node’s fetch', { host: HOST, 'sec-fetch-mode': 'cors' }],
  ])('%s is served', (_how, headers) => {
    expect(asked(headers)).toBeUndefined();
  });

  it.each([
    ['with a name that resolves to this machine', { host: 'rebound.example:4000' }],
    ['with a name that only begins like ours', { host: '127.0.0.1.evil.example:4000' }],
    ['with a name that only ends like ours', { host: 'evil-localhost:4000' }],
    ['without a host', {}],
    ['of a page of another site', { host: HOST, origin: 'https://evil.example' }],
    ['of another page on this machine', { host: HOST, origin: 'http://127.0.0.1:3000' }],
    ['of a page of the same machine by another name', { host: HOST, origin: 'http://localhost:4000' }],
    ['of a sandboxed page', { host: HOST, origin: 'null' }],
    ['of an image on another site', { host: HOST, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }],
    ['of a form on another site', { host: HOST, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }],
  ])('%s is not served', (_how, headers) => {
    expect(asked(headers)).toBeTypeOf('string');
  });

  it('by a link on another site opens the page', () => {
    const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    expect(asked({ host: HOST, ...link }, 'GET')).toBeUndefined();
    expect(asked({ host: HOST, ...link }, 'POST')).toBeTypeOf('string');
    expect(asked({ host: HOST, ...link, 'sec-fetch-dest': 'iframe' }, 'GET')).toBeTypeOf('string');
  });

  it('of a page of another site gets 403 with the reason, before it is handled', async () => {
    const world = await startHttpServer(0);
    const status = await new Promise<{ code?: number; text: string }>((resolve, reject) => {
      const sent = httpRequest(`${world.url}/_local/clock`, { headers: { host: 'rebound.example' } }, (answer) => {
        let text = '';
        answer.on('data', (chunk) => {
          text += chunk;
        });
        answer.on('end', () => resolve({ code: answer.statusCode, text }));
      });
      sent.on('error', reject).end();
    });
    await world.stop();
    expect(status).toEqual({
      code: 403,
      text: 'the header Host is "rebound.example"; this port serves only 127.0.0.1 and localhost\n',
    });
  });
});
