import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSimulators, type Simulators } from '../../../local/simulators/simulators.ts';
import { TEAMS } from '../../../local/simulators/slack/workspace.ts';

export const SIGNING_SECRET = 'local-slack-signing-secret';
export const BASIC = { authorization: `Basic ${Buffer.from('countersign:local').toString('base64')}` };
export const BEARER = { authorization: 'Bearer local-token' };

export type Json = Record<string, unknown>;

/** Responses of five vendors. They have no types, because the assertions already describe them. */
export type VendorJson = ReturnType<typeof JSON.parse>;

export interface Answer {
  status: number;
  headers: Headers;
  body: VendorJson;
}

/** The simulators behind a real server, with a clock the test owns. */
export interface World {
  url: string;
  nowMs: number;
  /** Where callbacks go; the simulators' own server unless the test receives them. */
  callbackUrl: string;
  dataFolder: string;
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  calls(query?: string): Promise<Json[]>;
  /** Opens the same folder again without having closed it, as after `kill -9`: only what is committed is there. */
  reopen(): void;
  close(): Promise<void>;
}

export async function openWorld(): Promise<World> {
  const dataFolder = mkdtempSync(join(tmpdir(), 'simulators-'));
  let simulators: Simulators;
  const opened: Simulators[] = [];
  const server = createServer((request, response) => {
    simulators.handle(request, response).catch((error) => response.destroy(error));
  });
  const url = await listen(server);
  const world: World = {
    url,
    nowMs: Date.UTC(2026, 0, 2, 3, 4, 5),
    callbackUrl: url,
    dataFolder,
    ask: async (method, path, body, headers = {}) => {
      const response = await fetch(`${url}/_sim${path}`, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, body: parse(text) };
    },
    calls: async (query = '') => (await world.ask('GET', `/calls${query}`)).body.calls,
    reopen: () => {
      simulators = open();
    },
    close: async () => {
      for (const each of opened.splice(0)) each.close();
      await stop(server);
      rmSync(dataFolder, { recursive: true, force: true });
    },
  };
  const open = (): Simulators => {
    const each = openSimulators({
      dataFolder,
      now: () => world.nowMs,
      hostUrl: () => world.callbackUrl,
      slackSigningSecrets: Object.fromEntries(TEAMS.map(({ id }) => [id, SIGNING_SECRET])),
    });
    opened.push(each);
    return each;
  };
  simulators = open();
  return world;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export async function stop(server: Server): Promise<void> {
  if (!server.listening) return;
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
