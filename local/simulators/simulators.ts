import type { IncomingMessage, ServerResponse } from 'node:http';
import { CallRecord } from './calls.ts';
import { isForbiddenWrite } from './credentials.ts';
import { BadRequest, type Delivery, readCall, type SimAnswer, type SimCall, sendAnswer } from './exchange.ts';
import { type Fault, Faults } from './faults.ts';
import { openGitHub } from './github/github.ts';
import { toCards } from './page/cards.ts';
import { openPage } from './page/page.ts';
import { openPagerDuty } from './pagerduty/pagerduty.ts';
import { openServiceNow } from './servicenow/servicenow.ts';
import { PERSON_VERBS, type SlackPerson, slackPerson } from './slack/person.ts';
import { openSlack } from './slack/slack.ts';
import { readState, type SimulatedWorld } from './state.ts';
import { SimulatorStore } from './store.ts';
import { type SimulatedSystem, SYSTEM_NAMES, type SystemContext, type SystemName } from './system.ts';
import { openVault } from './vault.ts';

export interface Simulators {
  /** Handles any request whose path starts with /_sim (page, calls, faults, systems). */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  close(): void;
}

export interface SimulatorOptions {
  /** `simulators.sqlite` is put here. */
  dataFolder: string;
  /** The host's clock, in milliseconds. */
  now: () => number;
  /** Base URL of the world port, where signed callbacks are sent; a function because the port is known late. */
  worldUrl: () => string;
  /** What Slack signs with, by team id. */
  slackSigningSecrets: Readonly<Record<string, string>>;
}

const ROOT = '/_sim';
const VALID_PATHS = [
  'GET /_sim',
  'GET /_sim/state',
  'GET|DELETE /_sim/calls',
  'GET|POST|DELETE /_sim/faults',
  ...SYSTEM_NAMES.map((name) => `/_sim/${name}/…`),
  ...PERSON_VERBS.map((verb) => `POST /_sim/slack/${verb}`),
];

/** The outside world of the local host: real HTTP, remembered in one file, with faults on order. */
export function openSimulators(options: SimulatorOptions): Simulators {
  const store = new SimulatorStore(options.dataFolder);
  const contextOf = (name: SystemName): SystemContext => ({
    store,
    now: options.now,
    baseUrl: () => `${options.worldUrl()}${ROOT}/${name}`,
  });
  const calls = new CallRecord(store);
  const faults = new Faults(store);
  const world = store.transaction(() => ({
    servicenow: openServiceNow(contextOf('servicenow')),
    github: openGitHub(contextOf('github')),
    slack: openSlack(contextOf('slack')),
    pagerduty: openPagerDuty(contextOf('pagerduty')),
    vault: openVault(contextOf('vault')),
  }));
  const person = slackPerson(contextOf('slack'), world.slack.workspaces, {
    url: (endpoint) => `${options.worldUrl()}/slack/${endpoint}`,
    signingSecrets: options.slackSigningSecrets,
  });
  const callSystem = systemCaller(store, world, calls, faults, options.now);
  const ownPaths = ownAnswers(store, { ...world, calls }, faults, callSystem.endDelays);
  const showPage = openPage();

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [, root, first = '', second = ''] = (request.url ?? '').split('?')[0]?.split('/') ?? [];
    if (`/${root}` !== ROOT) return sendAnswer(response, unknownPath(request));
    if (first === '' && request.method === 'GET') return showPage(response);
    const system = SYSTEM_NAMES.find((name) => name === first);
    if (system === 'slack' && PERSON_VERBS.includes(second)) return actAsPerson(person, second, request, response);
    if (system) return callSystem.handle(system, request, response);
    const answer = ownPaths(await readCall(request, ROOT));
    sendAnswer(response, answer ?? unknownPath(request));
  };

  return {
    handle: async (request, response) => {
      try {
        await handle(request, response);
      } catch (error) {
        answerError(response, error);
      }
    },
    close: () => {
      callSystem.close();
      store.close();
    },
  };
}

/** A caller that hung up needs no answer; a fault of ours must be seen, but not take the host down. */
function answerError(response: ServerResponse, error: unknown): void {
  if (error instanceof BadRequest) {
    sendAnswer(response, { status: error.status, body: { error: error.message } });
  } else if (!response.socket?.destroyed && !response.headersSent) {
    console.error('A simulator failed:', error);
    sendAnswer(response, { status: 500, body: { error: `the simulator failed: ${error}` } });
  }
}

const unknownPath = (request: IncomingMessage): SimAnswer => ({
  status: 404,
  body: { error: `there is no ${request.method} ${request.url}`, valid: VALID_PATHS },
});

/** `calls`, `faults` and `state`: what tests and the page ask of the simulators themselves. */
function ownAnswers(
  store: SimulatorStore,
  world: SimulatedWorld,
  faults: Faults,
  endDelays: () => void,
): (call: SimCall) => SimAnswer | undefined {
  const answers: Record<string, (call: SimCall) => SimAnswer> = {
    'GET /calls': (call) => ({ status: 200, body: { calls: world.calls.list(call.query) } }),
    'DELETE /calls': () => {
      world.calls.clear();
      return { status: 204 };
    },
    'GET /faults': () => ({ status: 200, body: { faults: faults.list() } }),
    'POST /faults': (call) => ({ status: 201, body: faults.order(call.body) }),
    'DELETE /faults': () => {
      faults.clear();
      endDelays();
      return { status: 204 };
    },
    'GET /state': (call) => state(store, world, call.query),
  };
  return (call) => answers[`${call.method} /${call.segments.join('/')}`]?.(call);
}

/** `form=cards` gives the same as rendered cards; `since` is the version the reader has, answered 204 while it is current. */
function state(store: SimulatorStore, world: SimulatedWorld, query: URLSearchParams): SimAnswer {
  const version = store.changes();
  if (query.get('since') === String(version)) return { status: 204 };
  const now = readState(world);
  return { status: 200, body: { version, ...(query.get('form') === 'cards' ? toCards(now) : now) } };
}

/** Only JSON: another site's form cannot send it without asking the browser first, which then refuses. */
async function actAsPerson(
  person: SlackPerson,
  verb: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const call = await readCall(request, `${ROOT}/slack`);
  const isJson = call.method === 'POST' && (call.header('content-type') ?? '').startsWith('application/json');
  if (!isJson || call.bodyIsMalformed) throw new BadRequest(`/_sim/slack/${verb} takes a POST with a JSON body`);
  sendAnswer(response, await person.act(verb, call.body));
}

function answerOf(system: SimulatedSystem, call: SimCall, fault: Fault | undefined): SimAnswer {
  if (fault?.kind === 'status') return refusal(system, fault);
  if (isForbiddenWrite(call)) return system.refuse(403, undefined);
  return system.answer(call, fault?.kind === 'surprise' ? fault.surprise : undefined);
}

/** One call of a simulated system: faults, effect, record and answer, in that order. */
function systemCaller(
  store: SimulatorStore,
  systems: Record<SystemName, SimulatedSystem>,
  calls: CallRecord,
  faults: Faults,
  now: () => number,
) {
  const waiting = new Set<() => void>();
  let closed = false;

  const delay = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      waiting.add(wake);
    });

  const handle = async (name: SystemName, request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const call = await readCall(request, `${ROOT}/${name}`);
    const befallen = faults.befall(name, call);
    if (befallen.delay) await delay(befallen.delay.delayMs);
    // A call still waiting when the host stops had no effect yet, and its connection is going away.
    if (closed) return void response.socket?.destroy();
    const { fault } = befallen;
    const delivery = deliveryOf(fault);
    const answer = store.transaction(() => {
      const given = answerOf(systems[name], call, fault);
      calls.add(name, call, now(), given.status, delivery);
      return fault?.kind === 'other_body' ? { status: 200, body: fault.body } : given;
    });
    sendAnswer(response, answer, delivery);
  };

  const endDelays = (): void => {
    for (const wake of waiting) wake();
  };

  return {
    handle,
    endDelays,
    close: () => {
      closed = true;
      endDelays();
    },
  };
}

function deliveryOf(fault: Fault | undefined): Delivery {
  if (fault?.kind === 'lost_answer') return 'lost';
  return fault?.kind === 'truncated_body' ? 'truncated' : 'whole';
}

function refusal(system: SimulatedSystem, fault: Extract<Fault, { kind: 'status' }>): SimAnswer {
  const answer = system.refuse(fault.status, fault.retryAfterSeconds);
  const { retryAfterSeconds } = fault;
  return {
    status: answer.status,
    headers: {
      ...answer.headers,
      ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
    },
    body: fault.body === undefined ? answer.body : fault.body,
  };
}
