import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import type { Session } from '../../../local/simulators/sessions/session.ts';
import type { SystemsState } from '../../../local/simulators/state.ts';
import type { SURPRISES } from '../../../local/simulators/system.ts';
import { eventually } from './eventually.ts';
import { ACME_KEY } from './host-client.ts';
import type { TestHost } from './test-host.ts';

export type ShownSession = SystemsState['sessions'][number];
type Behavior = (typeof SURPRISES)['sessions'][number];

const MINUTE_MS = 60_000;
/** A session notices the time within about 300 ms. */
const ASKED_EVERY_MS = 100;
export const ISSUE = { owner: 'octo-org', repo: 'payments', number: 7 };

/** A workflow whose session may label and assign one issue, followed by a step that uses its result. */
export const SESSION_WORKFLOW = `name: with-session
inputs:
  script: { type: string, required: true, maxLength: 8000 }
steps:
  - id: triage
    tool: agent.session
    with:
      configuration: triage-agent
      prompt: Triage the issue.
      context: { script: "{% inputs.script %}" }
      timeoutSeconds: 5400
      maxActions: 3
      actions:
        - { tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7 } }
        - { tool: github.assignees.add, with: { owner: octo-org, repo: payments, number: 7 } }
        - { tool: github.workflow.dispatch, with: { owner: octo-org, repo: payments } }
  - { id: done, tool: transform, with: { said: "{% steps.triage.output.summary %}" } }
`;

export const asks = async <Body>(host: TestHost, method: string, path: string, body: unknown, headers = {}) => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const answer = await host.request<Body>(method, `/api/v1${path}`, {
    headers: { 'x-api-key': ACME_KEY, ...headers },
    body: text,
  });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return answer.body;
};

export const publishSessions = (host: TestHost, workflow = SESSION_WORKFLOW) =>
  asks(host, 'POST', '/workflows', workflow, { 'content-type': 'application/yaml' });

export interface Script {
  actions?: { tool: string; input: object }[];
  outcome?: string;
}

/** Starts a run whose session follows the script. */
export async function startSession(host: TestHost, script: Script = {}, workflow = 'with-session'): Promise<string> {
  const body = { workflow: { name: workflow }, inputs: { script: JSON.stringify(script) } };
  return (await asks<{ runId: string }>(host, 'POST', '/runs', body)).runId;
}

/** The next session behaves so. */
export const misbehave = (host: TestHost, surprise: Behavior) =>
  host.simulatedFault({ system: 'sessions', method: 'POST', kind: 'surprise', surprise });

export async function sessionsOf(host: TestHost, runId: string): Promise<ShownSession[]> {
  const { sessions } = await host.ask<SystemsState>('GET', '/_sim/state');
  return sessions.filter((session) => session.runId === runId);
}

/** The one session of the run, as soon as it is as wanted. */
export const sessionOf = (host: TestHost, runId: string, wanted: (session: ShownSession) => boolean = () => true) =>
  host.eventually(`the session of ${runId}`, async () => {
    const [session, ...others] = await sessionsOf(host, runId);
    if (others.length > 0) throw new Error(`${others.length + 1} sessions of ${runId}`);
    return session && wanted(session) ? session : undefined;
  });

/** Every session at work has noticed the time, and has sent what follows from it. */
async function allNoticed(host: TestHost): Promise<void> {
  const waitsOf = async () => {
    const { sessions } = await host.ask<SystemsState>('GET', '/_sim/state');
    return new Map(sessions.flatMap(({ id, waits }) => (waits === undefined ? [] : [[id, waits] as const])));
  };
  const before = await waitsOf();
  const noticed = async () => {
    const now = await waitsOf();
    return [...before].every(([id, waits]) => (now.get(id) ?? waits + 2) >= waits + 2) || undefined;
  };
  await eventually('the sessions have noticed the time', noticed, { pause: () => delay(ASKED_EVERY_MS) });
}

/**
 * Time passes in steps that let the session give signs of life between them. The sweeper runs in each, because a minute passes; a
 * session may be silent for 30 minutes.
 */
export async function letMinutesPass(host: TestHost, minutes: number, atATime = 13): Promise<void> {
  for (let passed = 0; passed < minutes; passed += atATime) {
    await host.idle();
    await host.advance(Math.min(atATime, minutes - passed) * MINUTE_MS);
    await allNoticed(host);
  }
  await host.idle();
}

/** How often the simulated agent received this method about the run. */
export async function rpcCalls(host: TestHost, runId: string, method: string): Promise<number> {
  const [session] = await sessionsOf(host, runId);
  const calls = await host.calls({ system: 'sessions', method: 'POST' });
  return calls.filter(({ body }) => {
    const sent = body as { method: string; params: { id?: string; message?: { contextId: string } } };
    const isAbout = sent.params.id === session?.id || sent.params.message?.contextId.includes(runId);
    return sent.method === method && isAbout;
  }).length;
}

/** The session of a run as the simulated agent stores it, with its prompt and its token: only the agent has them. */
export function storedSession(host: TestHost, runId: string): Session {
  const database = new DatabaseSync(join(host.dataFolder, 'simulators.sqlite'), { readOnly: true });
  const rows = database.prepare("SELECT body FROM things WHERE collection = 'sessions.task'").all();
  database.close();
  const sessions = rows.map(({ body }) => JSON.parse(String(body)) as Session);
  const found = sessions.find(({ contract }) => contract.run_id === runId);
  if (!found) throw new Error(`the simulated agent has no session of ${runId}`);
  return found;
}

export const contractOf = (host: TestHost, runId: string): Session['contract'] => storedSession(host, runId).contract;
