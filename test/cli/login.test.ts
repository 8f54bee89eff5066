import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runCommandLine } from '../../bin/commands/command-line.ts';
import { encoded } from '../api/access/oidc-issuer.ts';
import { piped } from './command-line.ts';

let folder: string;
let file: string;
let server: Server;
let url: string;
/** Requests to the stage and its issuer: method, path, and the credential or form. */
let seen: string[];
let lifetimeSeconds: number;
let refuseRefresh: boolean;
let nonce: string | null;

const token = (name: string) =>
  `${encoded({})}.${encoded({ name, nonce, exp: Math.floor(Date.now() / 1000) + lifetimeSeconds })}.s`;
const nameIn = (bearer = '') =>
  JSON.parse(Buffer.from(bearer.split('.')[1] ?? '', 'base64url').toString() || '{}').name;

/** A stage and its issuer in one server. */
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'countersign-login-'));
  file = join(folder, 'config', 'profiles.json');
  [seen, lifetimeSeconds, refuseRefresh, nonce] = [[], 900, false, null];
  server = createServer(async (request, response) => {
    const form = new URLSearchParams(await text(request));
    const { authorization, 'x-api-key': key } = request.headers;
    const send = (status: number, body: unknown) => response.writeHead(status).end(JSON.stringify(body));
    seen.push(
      `${request.method} ${request.url} ${key ?? nameIn(authorization) ?? form.get('grant_type') ?? ''}`.trim(),
    );
    switch (request.url) {
      case '/api/v1/sign-in':
        return send(200, { issuers: [{ name: 'acme', issuer: `${url}/id`, clientId: 'cli', audience: 'cli' }] });
      case '/id/.well-known/openid-configuration':
        return send(200, { issuer: `${url}/id`, authorization_endpoint: `${url}/id/a`, token_endpoint: `${url}/id/t` });
      case '/id/t':
        if (form.get('grant_type') === 'refresh_token' && refuseRefresh) return send(400, { error: 'invalid_grant' });
        return send(200, { id_token: token(form.get('grant_type') ?? ''), refresh_token: 'refresh' });
      case '/api/v1/me':
        if (key === 'wrong') return send(401, { detail: 'the API key does not exist or was revoked' });
        return send(200, { tenant: 'acme', person: 'ana', role: 'approver', groups: [], rights: [], credential: {} });
      default:
        return send(404, {});
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

const run = (...args: string[]) => piped(args, { COUNTERSIGN_PROFILES: file });
const stored = () => JSON.parse(readFileSync(file, 'utf8'));

/** Signs in. The browser redirects as given, by default with a code. */
async function signIn(answer = (query: URLSearchParams) => ({ code: 'code', state: query.get('state') ?? '' })) {
  const notes: string[] = [];
  const note = (line: string) => {
    notes.push(line);
    const [, address] = /^sign in here: (.+)$/.exec(line) ?? [];
    if (!address) return;
    const query = new URL(address).searchParams;
    nonce ??= query.get('nonce');
    void fetch(`${query.get('redirect_uri')}?${new URLSearchParams(answer(query))}`);
  };
  const terminal = {
    isInteractive: false,
    columns: 100,
    print: (line: string) => void notes.push(line),
    note,
    paint: (_tone: unknown, text: string) => text,
    ask: async () => undefined,
  };
  const exitCode = await runCommandLine(['login', url], { COUNTERSIGN_PROFILES: file }, terminal);
  return { exitCode, output: notes.join('\n') };
}

describe('countersign login', () => {
  it('signs in with the issuer and PKCE, and stores the profile so that only its owner can read it', async () => {
    const { exitCode, output } = await signIn();
    expect({ exitCode, output }).toMatchObject({ exitCode: 0, output: expect.stringContaining('approver of acme') });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(stored().profiles[stored().current]).toMatchObject({ url, signIn: { refreshToken: 'refresh' } });
    expect((await run('whoami')).exitCode).toBe(0);
    expect(seen.at(-1)).toBe('GET /api/v1/me authorization_code');
  });

  it('refuses a redirect with an error, or for another sign-in, and stores nothing', async () => {
    const denied = await signIn((query) => ({ error: 'access_denied', state: query.get('state') ?? '' }) as never);
    expect(denied).toMatchObject({ exitCode: 3, output: expect.stringContaining('access_denied') });
    nonce = 'another';
    expect(await signIn()).toMatchObject({
      exitCode: 3,
      output: expect.stringContaining('belongs to another sign-in'),
    });
    expect(() => stored()).toThrow();
  });

  it('stores an API key that the stage accepts, and no other', async () => {
    const refused = await run('login', url, '--key', 'wrong');
    expect(refused).toMatchObject({ exitCode: 3, stderr: expect.stringContaining('does not exist or was revoked') });
    expect(() => stored()).toThrow();
    expect((await run('login', url, '--key', 'good', '--profile', 'mine')).exitCode).toBe(0);
    expect(stored()).toEqual({ current: 'mine', profiles: { mine: { url, apiKey: 'good' } } });
  });
});

describe('a profile', () => {
  it('refreshes a token that is about to expire, once, and says to sign in again if that fails', async () => {
    lifetimeSeconds = 30;
    await signIn();
    lifetimeSeconds = 900;
    for (let count = 0; count < 2; count += 1) expect((await run('whoami')).exitCode).toBe(0);
    expect(seen.slice(-3)).toEqual([
      'POST /id/t refresh_token',
      'GET /api/v1/me refresh_token',
      'GET /api/v1/me refresh_token',
    ]);
    [lifetimeSeconds, nonce] = [30, null];
    await signIn();
    refuseRefresh = true;
    const { exitCode, stderr } = await run('whoami');
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining(`countersign login ${url}`),
    });
  });

  it('sends its credential to its own stage only; --key and --profile win over it', async () => {
    await run('login', url, '--key', 'one', '--profile', 'a');
    await run('login', url, '--key', 'two', '--profile', 'b');
    const used = async (...args: string[]) => {
      await run('whoami', ...args);
      return seen.at(-1);
    };
    expect(await used()).toBe('GET /api/v1/me two');
    expect(await used('--profile', 'a')).toBe('GET /api/v1/me one');
    expect(await used('--key', 'three')).toBe('GET /api/v1/me three');
    const elsewhere = await run('whoami', '--url', 'https://api.example.com');
    expect(elsewhere).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('not signed in at https://api.') });
    expect((await run('whoami', '--profile', 'c')).stderr).toContain('there is no profile "c"; there are: a, b');
    expect((await run('whoami', '--profile', 'a', '--url', url)).stderr).toContain('--url or --profile, not both');
  });

  it('is the default after use, and gone after logout', async () => {
    await run('login', url, '--key', 'one', '--profile', 'a');
    await run('login', url, '--key', 'two', '--profile', 'b');
    await run('profiles', 'use', 'a');
    expect((await run('profiles', 'list')).stdout).toMatch(/\* +a +\S+ +API key\n +b /);
    await run('logout');
    expect(stored()).toEqual({ profiles: { b: { url, apiKey: 'two' } } });
    expect((await run('logout')).stderr).toContain('you are not signed in');
  });

  it('file that is damaged is named, and not replaced', async () => {
    await run('login', url, '--key', 'one');
    writeFileSync(file, '{');
    const { exitCode, stderr } = await run('whoami');
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining(`${file} is not a file`),
    });
    expect(readFileSync(file, 'utf8')).toBe('{');
  });
});
