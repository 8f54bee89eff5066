import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { Decided, Deciding } from '../../lambdas/approval/decide.ts';
import type { HttpEvent, HttpResponse } from '../../lambdas/entry/http.ts';
import { Problem } from '../../lambdas/entry/http.ts';
import type { Approval } from '../../lambdas/run/approval.ts';
import { SlackCards } from '../../lambdas/slack/card/slack-cards.ts';
import { handleCommand } from '../../lambdas/slack/handle-command.ts';
import { handleInteraction } from '../../lambdas/slack/handle-interaction.ts';
import { SlackNotices } from '../../lambdas/slack/notice/slack-notices.ts';
import { TeamTenants } from '../../lambdas/slack/request/team-tenants.ts';
import { MemoryConnections } from '../fakes/memory/memory-connections.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';
import { MemorySigningSecrets } from '../fakes/memory/memory-signing-secrets.ts';
import { listen, openWorld, SIGNING_SECRET, stop, type VendorJson } from '../local/simulators/world.ts';
import { Workshop } from '../worker/workshop.ts';
import { PEOPLE } from './approvals.ts';

export const ANA = 'U100ANA';
export const BEN = 'U200BEN';
export const CHLOE = 'U300CHLOE';
export const TEAM = 'T100ACME';
const PAGER_KEY = 'r'.repeat(32);

export type SlackWorld = Awaited<ReturnType<typeof openSlackWorld>>;

/** The Slack endpoints behind a real server, called by the Slack simulator with signed requests; only the decision is scripted. */
export async function openSlackWorld() {
  const sim = await openWorld();
  const server = createServer((request, response) => serve(request, response));
  // As on the host, the simulators and the endpoints have one address.
  sim.callbackUrl = await listen(server);
  const definitions = new MemoryDefinitions();
  const access = (system: string) => ({ baseUrl: `${sim.callbackUrl}/_sim/${system}`, instance: TEAM });
  for (const person of PEOPLE) await definitions.savePerson('acme', person);
  await definitions.saveConnection('acme', { name: 'slack', ...access('slack') });
  await definitions.saveConnection('globex', { name: 'slack', ...access('slack'), instance: 'T200GLOBEX' });

  const approvals = new Map<string, Approval>();
  const decisions: Deciding[] = [];
  const log = new MemoryLog();
  const clock = { now: () => sim.nowMs };
  const slack = { ...access('slack'), credential: { botToken: 'xoxb-local' } };
  const pagerduty = { ...access('pagerduty'), credential: { routingKey: PAGER_KEY } };
  const pending = { next: undefined as string | undefined, asked: [] as (string | undefined)[] };
  const shop = new Workshop();
  const ports = {
    ...shop.worker,
    notices: shop.runs.notices,
    messages: new SlackNotices({ connections: shop.worker.connections, definitions, log, consoleUrl: undefined }),
    clock,
    log,
    definitions,
    teams: new TeamTenants(['acme', 'globex'], definitions, clock.now),
    secrets: new MemorySigningSecrets({ acme: { slack: SIGNING_SECRET }, globex: { slack: 'globex-signing-secret' } }),
    connections: new MemoryConnections({ acme: { slack, pagerduty }, globex: { slack } }),
    runs: Object.assign(Object.create(shop.runs) as typeof shop.runs, {
      approval: async (tenant: string, _runId: string, approvalId: string) => approvals.get(`${tenant}/${approvalId}`),
      pendingApprovals: async (_tenant: string, { limit, after }: { limit: number; after?: string }) => {
        pending.asked.push(after);
        return { items: [...approvals.values()].slice(0, limit), ...(pending.next && { next: pending.next }) };
      },
    }),
    decide: async (deciding: Deciding): Promise<Decided> => {
      decisions.push(deciding);
      return world.decides(deciding);
    },
    sleep: () => new Promise<void>(() => {}),
  };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request);
    if (request.url?.startsWith('/_sim')) return passOn(`${sim.url}${request.url}`, request, body, response);
    const event = {
      body: body.toString('base64'),
      isBase64Encoded: true,
      headers: request.headers,
      requestContext: { requestId: 'request-1' },
    } as unknown as HttpEvent;
    const { statusCode = 500, body: answer } = await answered(() =>
      request.url === '/slack/commands' ? handleCommand(ports, event) : handleInteraction(ports, event),
    );
    response.writeHead(statusCode, { 'content-type': 'application/json' }).end(answer);
  };
  const act = async (verb: string, body: object): Promise<VendorJson> =>
    (await sim.ask('POST', `/slack/${verb}`, body)).body;

  const world = {
    sim,
    ports,
    log,
    approvals,
    decisions,
    pending,
    definitions,
    cards: new SlackCards({ ...ports, people: definitions }),
    /** The scripted outcome of the decision. */
    decides: (deciding: Deciding): Decided => {
      throw new Error(`the test has no outcome for ${deciding.approvalId}; set "decides"`);
    },
    know: (approval: Approval) => approvals.set(`${approval.tenant}/${approval.approvalId}`, approval),
    /** The card of an approval, posted to the simulator. */
    post: async (approval: Approval): Promise<Approval> => {
      const posted = { ...approval, card: await world.cards.post(approval, false) };
      world.know(posted);
      return posted;
    },
    click: (user: string, { card }: Approval, action: string) =>
      act('_click', { user, channel: card?.channel, ts: card?.ts, action_id: `countersign_${action}` }),
    submit: (user: string, view: string, values: object) => act('_submit', { user, view_id: view, values }),
    act,
    state: async (): Promise<VendorJson> => (await sim.ask('GET', '/state')).body,
    modal: async (): Promise<VendorJson> => (await world.state()).views[0],
    messages: async (): Promise<VendorJson[]> =>
      (await world.state()).channels.flatMap((channel: VendorJson) => channel.messages),
    /** Messages that only this person sees. */
    replies: async (user: string): Promise<string[]> =>
      (await world.messages()).filter(({ ephemeral_for }) => ephemeral_for === user).map(({ text }) => text),
    close: async () => {
      await stop(server);
      await sim.close();
    },
  };
  return world;
}

async function passOn(url: string, { method, headers }: IncomingMessage, body: Buffer, response: ServerResponse) {
  const { authorization = '', 'content-type': type = '' } = headers;
  const sent = { method, headers: { authorization, 'content-type': type }, ...(body.length > 0 && { body }) };
  try {
    const answer = await fetch(url, sent);
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  } catch {
    response.destroy();
  }
}

async function answered(answer: () => Promise<HttpResponse>): Promise<HttpResponse> {
  try {
    return await answer();
  } catch (error) {
    if (error instanceof Problem) return { statusCode: error.status, body: JSON.stringify({ detail: error.message }) };
    return { statusCode: 500, body: JSON.stringify({ detail: String(error) }) };
  }
}

/** A request as API Gateway passes it on, signed like Slack. */
export function slackRequest(
  body: string,
  { nowMs, secret = SIGNING_SECRET, offByMs = 0 }: { nowMs: number; secret?: string; offByMs?: number },
): HttpEvent {
  const timestamp = String(Math.floor((nowMs + offByMs) / 1000));
  const signature = `v0=${createHmac('sha256', secret).update(`v0:${timestamp}:${body}`).digest('hex')}`;
  return {
    body,
    isBase64Encoded: false,
    headers: { 'x-slack-request-timestamp': timestamp, 'x-slack-signature': signature },
    requestContext: { requestId: 'request-1' },
  } as unknown as HttpEvent;
}
