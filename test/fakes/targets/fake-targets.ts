import type { Access } from '../../../lambdas/connectors/connector.ts';
import type { Clock } from '../../../lambdas/entry/ports.ts';
import { type Passage, undisturbed } from '../passage.ts';
import { FakeA2a } from './fake-a2a.ts';
import { FakeGitHub } from './fake-github.ts';
import { FakePagerDuty } from './fake-pagerduty.ts';
import { FakeServiceNow } from './fake-servicenow.ts';
import { FakeSlack } from './fake-slack.ts';
import { HOOKS_HOST, HOOKS_URL } from './http-through-fetch.ts';

export interface OutsideCall {
  name: string;
  path: string;
  body: unknown;
}

/** The fault of a call. `lost_answer`: it takes effect without a response. `lost_request`: it never arrives. */
export type TargetFault =
  | { status: number; retryAfterSeconds?: number; body?: unknown }
  | 'unreachable'
  | 'lost_request'
  | 'lost_answer'
  | 'truncated'
  /** It takes effect, and the response is 200 with this body. */
  | { body: unknown };

export interface FakeRequest {
  method: string;
  url: URL;
  headers: Headers;
  /** Of the path. */
  parts: string[];
  body: Record<string, unknown> | undefined;
}

export type FakeAnswer = { status: number; body: unknown; headers?: Record<string, string> };

type System = 'servicenow' | 'github' | 'slack' | 'pagerduty' | 'http' | 'sessions';

/**
 * The targets in memory, behind their own `fetch`: without sockets and real time, so that a whole run can be repeated
 * exactly. The contract test of the connectors ensures that they behave like the simulators.
 */
export class FakeTargets {
  readonly calls: OutsideCall[] = [];
  /** The header `traceparent` of each request, by `METHOD host`. */
  readonly traceparents: [name: string, traceparent: string | undefined][] = [];
  readonly #passage: Passage;
  readonly #faults: { name: string; fault: TargetFault }[] = [];
  readonly #servicenow = new FakeServiceNow();
  readonly #github: FakeGitHub;
  readonly #slack: FakeSlack;
  readonly #pagerduty = new FakePagerDuty();
  readonly sessions = new FakeA2a();

  constructor(clock: Clock, passage: Passage = undisturbed) {
    this.#github = new FakeGitHub(clock);
    this.#slack = new FakeSlack(clock);
    this.#passage = passage;
  }

  get incidents() {
    return this.#servicenow.incidents;
  }

  get records() {
    return this.#servicenow.records;
  }

  get issueLabels() {
    return this.#github.issueLabels;
  }

  get channels() {
    return this.#slack.channels;
  }

  get alerts() {
    return this.#pagerduty.alerts;
  }

  /** One connection to each system, as a tenant would define them. */
  access(instance = 'acme'): Record<System, Access> {
    return {
      servicenow: { baseUrl: 'http://servicenow', instance, credential: { username: 'countersign', password: 'x' } },
      github: { baseUrl: 'http://github', instance, credential: { token: 'x' } },
      slack: { baseUrl: 'http://slack', instance, credential: { botToken: 'x' } },
      pagerduty: { baseUrl: 'http://pagerduty', instance, credential: { routingKey: 'x' } },
      http: { baseUrl: HOOKS_URL, instance, credential: { hosts: {} }, allowedHosts: [HOOKS_HOST], ownUrl: HOOKS_URL },
      sessions: { baseUrl: 'http://sessions', instance, credential: { token: 'x'.repeat(20) }, ownUrl: 'http://stage' },
    };
  }

  /** The next call of this name (`POST slack`) gets this fault; several faults apply in order. */
  next(name: string, ...faults: TargetFault[]): void {
    this.#faults.push(...faults.map((fault) => ({ name, fault })));
  }

  callsOf(name: string): OutsideCall[] {
    return this.calls.filter((call) => call.name === name);
  }

  readonly fetch: typeof fetch = async (input, init = {}) => {
    const url = new URL(String(input));
    const name = `${init.method ?? 'GET'} ${url.hostname}`;
    this.traceparents.push([name, new Headers(init.headers).get('traceparent') ?? undefined]);
    return this.#passage(name, async () => this.#exchange(name, url, init));
  };

  #exchange(name: string, url: URL, init: RequestInit): Response {
    const body = typeof init.body === 'string' ? JSON.parse(init.body) : undefined;
    const at = this.#faults.findIndex((each) => each.name === name);
    const fault = at < 0 ? undefined : this.#faults.splice(at, 1)[0]?.fault;
    if (fault === 'unreachable') throw fetchFailed('ECONNREFUSED');
    if (fault === 'lost_request') throw fetchFailed('UND_ERR_SOCKET');
    this.calls.push({ name, path: url.pathname + url.search, body });
    if (typeof fault === 'object' && 'status' in fault) return refusal(fault);
    const [method = ''] = name.split(' ');
    const parts = url.pathname.split('/').filter(Boolean);
    const answer = this.#system(url.hostname).answer({ method, url, headers: new Headers(init.headers), parts, body });
    if (fault === 'lost_answer') throw fetchFailed('ECONNRESET');
    if (typeof fault === 'object') return Response.json(fault.body);
    if (answer.body === undefined) return new Response(null, { status: answer.status });
    const text = JSON.stringify(answer.body);
    const { status, headers } = answer;
    return new Response(fault === 'truncated' ? text.slice(0, text.length / 2) : text, { status, headers });
  }

  #system(host: string): { answer(request: FakeRequest): FakeAnswer } {
    if (host === 'servicenow') return this.#servicenow;
    if (host === 'github') return this.#github;
    if (host === 'sessions') return this.sessions;
    // Only the target knows the effect of an `http.request`, so tests can only see the calls.
    if (HOOKS_HOST.startsWith(host)) return { answer: () => ({ status: 200, body: { accepted: true } }) };
    return host === 'slack' ? this.#slack : this.#pagerduty;
  }
}

function refusal(fault: { status: number; retryAfterSeconds?: number; body?: unknown }): Response {
  const { status, retryAfterSeconds, body = { error: 'ordered' } } = fault;
  const headers = new Headers(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) });
  return new Response(JSON.stringify(body), { status, headers });
}

function fetchFailed(code: string): TypeError {
  return new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) });
}
