import type { IncomingMessage, ServerResponse } from 'node:http';
import { CallRecord } from './calls.ts';
import { isForbiddenWrite } from './credentials.ts';
import {
  BadRequest,
  callOf,
  type Delivery,
  readRequest,
  type SimCall,
  type SimRequest,
  type SimResponse,
  sendResponse,
} from './exchange.ts';
import { type Fault, Faults } from './faults.ts';
import { openGitHub } from './github/github.ts';
import { toCards } from './page/cards.ts';
import { openPage } from './page/page.ts';
import { openPagerDuty } from './pagerduty/pagerduty.ts';
import { openServiceNow } from './servicenow/servicenow.ts';
import { openSessions } from './sessions/a2a-server.ts';
import { PERSON_VERBS, type SlackPerson, slackPerson } from './slack/person.ts';
import { openSlack } from './slack/slack.ts';
import { readState, type SimulatedSystems } from './state.ts';
import { SimulatorStore } from './store.ts';
import { type SimulatedSystem, SYSTEM_NAMES, type SystemContext, type SystemName } from './system.ts';
import { openVault } from './vault.ts';

export interface Simulators {
  /** Handles every request whose path starts with /_sim: the page, calls, faults and the systems. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Answers a request that did not come over a socket. */
  answer(request: SimRequest): Promise<Answered>;
  close(): void;
}

interface Answered {
  response: SimResponse;
  delivery: Delivery;
}

interface SimulatorOptions {
  /** The folder of `simulators.sqlite`. */
  dataFolder: string;
  /** The host's clock, in milliseconds. */
  now: () => number;
  /** The base URL of the host, for signed callbacks. It is a function because the port is known late. */
  hostUrl: () => string;
  /** The signing secrets of Slack, by team id. */
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

/** The external systems of the local host. They speak HTTP, store their data in one file, and can have faults. */
export function openSimulators(options: SimulatorOptions): Simulators {
  const store = new SimulatorStore(options.dataFolder);
  const contextOf = (name: SystemName): SystemContext => ({
    store,
    now: options.now,
    baseUrl: () => `${options.hostUrl()}${ROOT}/${name}`,
  });
  const calls = new CallRecord(store);
  const faults = new Faults(store);
  const world = store.transaction(() => ({
    servicenow: openServiceNow(contextOf('servicenow')),
    github: openGitHub(contextOf('github')),
    slack: openSlack(contextOf('slack')),
    pagerduty: openPagerDuty(contextOf('pagerduty')),
    vault: openVault(contextOf('vault')),
    sessions: openSessions(contextOf('sessions')),
  }));
  const person = slackPerson(contextOf('slack'), world.slack.workspaces, {
    url: (endpoint) => `${options.hostUrl()}/slack/${endpoint}`,
    signingSecrets: options.slackSigningSecrets,
  });
  const callSystem = systemCaller(store, world, calls, faults, options.now);
  const ownPaths = ownRoutes(store, { ...world, calls }, faults, callSystem.endDelays);
  const showPage = openPage();

  const answerTo = async (request: SimRequest): Promise<Answered> => {
    const [, root, first = '', second = ''] = request.url.split('?')[0]?.split('/') ?? [];
    if (`/${root}` !== ROOT) return whole(unknownPath(request));
    const system = SYSTEM_NAMES.find((name) => name === first);
    if (system === 'slack' && PERSON_VERBS.includes(second)) return whole(await actAsPerson(person, second, request));
    if (system) return callSystem.answer(system, request);
    return whole(ownPaths(callOf(request, ROOT)) ?? unknownPath(request));
  };
  const answer = async (request: SimRequest): Promise<Answered> => {
    try {
      return await answerTo(request);
    } catch (error) {
      return whole(errorResponse(error));
    }
  };

  return {
    answer,
    handle: async (request, response) => {
      if (request.method === 'GET' && /^\/_sim\/?(\?|$)/.test(request.url ?? '')) return showPage(response);
      try {
        const { response: answered, delivery } = await answer(await readRequest(request));
        sendResponse(response, answered, delivery);
      } catch (error) {
        // A closed connection needs no response.
        if (!response.socket?.destroyed && !response.headersSent) sendResponse(response, errorResponse(error));
      }
    },
    close: () => {
      world.sessions.close();
      callSystem.close();
      store.close();
    },
  };
}

const whole = (response: SimResponse): Answered => ({ response, delivery: 'whole' });

/** A bug in a simulator is logged, and the host continues. */
function errorResponse(error: unknown): SimResponse {
  if (error instanceof BadRequest) return { status: error.status, body: { error: error.message } };
  console.error('A simulator failed:', error);
  return { status: 500, body: { error: `the simulator failed: ${error}` } };
}

const unknownPath = (request: SimRequest): SimResponse => ({
  status: 404,
  body: { error: `there is no ${request.method} ${request.url}`, valid: VALID_PATHS },
});

/** The API of the simulators for tests and the page: `calls`, `faults` and `state`. */
function ownRoutes(
  store: SimulatorStore,
  world: SimulatedSystems,
  faults: Faults,
  endDelays: () => void,
): (call: SimCall) => SimResponse | undefined {
  const answers: Record<string, (call: SimCall) => SimResponse> = {
    'GET /calls': (call) => ({ status: 200, body: { calls: world.calls.list(call.query) } }),
    'DELETE /calls': () => {
      world.calls.clear();
      return { status: 204 };
    },
    'GET /faults': () => ({ status: 200, body: { faults: faults.list() } }),
    'POST /faults': (call) => ({ status: 201, body: faults.add(call.body) }),
    'DELETE /faults': () => {
      faults.clear();
      endDelays();
      return { status: 204 };
    },
    'GET /state': (call) => state(store, world, call.query),
  };
  return (call) => answers[`${call.method} /${call.segments.join('/')}`]?.(call);
}

/** `form=cards` returns rendered cards. `since` is the version that the reader has; the response is 204 if it is current. */
function state(store: SimulatorStore, world: SimulatedSystems, query: URLSearchParams): SimResponse {
  const version = store.changes();
  if (query.get('since') === String(version)) return { status: 204 };
  const now = readState(world);
  return { status: 200, body: { version, ...(query.get('form') === 'cards' ? toCards(now) : now) } };
}

/** Accepts only JSON: a form of another site cannot send JSON without a preflight request, which is refused. */
async function actAsPerson(person: SlackPerson, verb: string, request: SimRequest): Promise<SimResponse> {
  const call = callOf(request, `${ROOT}/slack`);
  const isJson = call.method === 'POST' && (call.header('content-type') ?? '').startsWith('application/json');
  if (!isJson || call.bodyIsMalformed) throw new BadRequest(`/_sim/slack/${verb} requires a POST with a JSON body`);
  return person.act(verb, call.body);
}

function answerOf(system: SimulatedSystem, call: SimCall, fault: Fault | undefined): SimResponse {
  if (fault?.kind === 'status') return refusal(system, fault);
  if (isForbiddenWrite(call)) return system.refuse(403, undefined);
  return system.answer(call, fault?.kind === 'surprise' ? fault.surprise : undefined);
}

/** One call to a simulated system: faults, effect, record and response, in this order. */
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

  const answer = async (name: SystemName, request: SimRequest): Promise<Answered> => {
    const call = callOf(request, `${ROOT}/${name}`);
    const callFaults = faults.forCall(name, call);
    if (callFaults.delay) await delay(callFaults.delay.delayMs);
    // A call that still waits when the host stops has no effect.
    if (closed) return { response: { status: 503 }, delivery: 'lost' };
    const { fault } = callFaults;
    const delivery = deliveryOf(fault);
    const response = store.transaction(() => {
      const given = answerOf(systems[name], call, fault);
      calls.add(name, call, now(), given.status, delivery);
      return fault?.kind === 'other_body' ? { status: 200, body: fault.body } : given;
    });
    return { response, delivery };
  };

  const endDelays = (): void => {
    for (const wake of waiting) wake();
  };

  return {
    answer,
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

function refusal(system: SimulatedSystem, fault: Extract<Fault, { kind: 'status' }>): SimResponse {
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
