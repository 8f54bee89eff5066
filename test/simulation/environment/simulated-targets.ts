import type { Access } from '../../../lambdas/connectors/connector.ts';
import { EXCHANGE_TIMEOUT_MS } from '../../../lambdas/connectors/exchange.ts';
import type { FakeTask } from '../../fakes/targets/fake-a2a.ts';
import { FakeTargets, type TargetFault } from '../../fakes/targets/fake-targets.ts';
import { HOOKS_HOST } from '../../fakes/targets/http-through-fetch.ts';
import { GROUP_BY_NAME } from '../actors/incident-editors.ts';
import type { Fault } from '../faults.ts';
import type { FaultyCalls } from './faulty-calls.ts';
import type { Invocation } from './invocation.ts';
import type { VirtualTime } from './virtual-time.ts';

/** A request that was sent reaches its target within ten seconds or never: the quarantine depends on this limit. */
const SLOW_REQUEST_MS = [500, 9_900] as const;
const RETRY_AFTER_SECONDS = 7;
const TOO_MANY_REQUESTS = 429;

export interface TargetRequest {
  by: Invocation;
  method: string;
  url: URL;
  body: Record<string, unknown> | undefined;
}

interface RequestObserver {
  sent(request: TargetRequest): void;
  /** With the current fields of its incident. */
  handled(request: TargetRequest, fields: Record<string, string> | undefined): void;
  /** The agent of sessions has started a task. */
  sessionStarted(request: TargetRequest, task: FakeTask): void;
  /** The target does not accept the request before this time. */
  retryAfter(request: TargetRequest, untilMs: number): void;
}

const REFUSALS: Partial<Record<Fault, TargetFault>> = {
  rate_limited: { status: 429, retryAfterSeconds: RETRY_AFTER_SECONDS },
  server_error: { status: 503 },
  truncated: 'truncated',
};

/** The targets behind a network: requests take time, responses get lost, and a caller that times out knows nothing. */
export class SimulatedTargets {
  readonly systems: FakeTargets;
  readonly #time: VirtualTime;
  readonly #faultyCalls: FaultyCalls;
  readonly #observer: RequestObserver;
  readonly #targetDelayMs: readonly [from: number, to: number];
  readonly #callers = new Map<string, Invocation>();
  #lookups = 0;

  constructor(
    time: VirtualTime,
    faultyCalls: FaultyCalls,
    observer: RequestObserver,
    targetDelayMs: readonly [from: number, to: number],
  ) {
    this.systems = new FakeTargets(time);
    this.#time = time;
    this.#faultyCalls = faultyCalls;
    this.#observer = observer;
    this.#targetDelayMs = targetDelayMs;
  }

  /** Access whose credential names the invocation. The credential is all that the target gets of the caller. */
  accessFor(by: Invocation): Record<string, Access> {
    this.#callers.set(by.id, by);
    const { servicenow, github, slack, http, sessions } = this.systems.access();
    return {
      servicenow: { ...servicenow, credential: { username: by.id, password: 'x' } },
      github: { ...github, credential: { token: by.id } },
      slack: { ...slack, credential: { botToken: by.id } },
      sessions: { ...sessions, credential: { token: by.id } },
      http: { ...http, credential: { hosts: { [HOOKS_HOST]: { headers: { authorization: `Bearer ${by.id}` } } } } },
    };
  }

  readonly fetch: typeof fetch = (input, init = {}) =>
    new Promise<Response>((respond, fail) => {
      const by = this.#callers.get(callerIn(init.headers));
      if (!by) throw new Error('no invocation has this credential');
      // Lambda kills an invocation at its timeout. One that outlives its timeout must check the time itself.
      if (by.isKilled || (by.remainingMs <= 0 && !by.outlivesTimeout)) return by.kill();
      const url = new URL(String(input));
      const request: TargetRequest = { by, method: init.method ?? 'GET', url, body: bodyOf(init.body) };
      const name = `${request.method} ${url.hostname}`;
      const fault = this.#faultyCalls.chooseFault(by, { kind: 'target', name });
      by.openCalls += 1;
      let ended = false;
      const once = (then: () => void) => {
        if (!ended) by.openCalls -= 1;
        ended = true;
        then();
      };
      const resolve = (response: Response) => once(() => respond(response));
      const reject = (error: unknown) => once(() => fail(error));
      if (fault === 'crash_before') return by.kill();
      if (fault === 'unreachable') return this.#fail(by, 'ECONNREFUSED', this.#targetDelayMs, reject);
      this.#observer.sent(request);
      if (fault === 'lost_request') return this.#fail(by, 'UND_ERR_SOCKET', SLOW_REQUEST_MS, reject);
      if (fault === 'crash_after') by.kill();
      if (fault === 'lost_reply') this.#fail(by, 'ECONNRESET', this.#targetDelayMs, reject);
      this.#send(request, fault, init, resolve);
      // A paused caller does not notice that its request has timed out.
      if (fault === 'pause') return;
      this.#time.after(EXCHANGE_TIMEOUT_MS, () =>
        by.resume(() => reject(new DOMException('The operation was aborted due to timeout', 'TimeoutError'))),
      );
    });

  #send(request: TargetRequest, fault: Fault | undefined, init: RequestInit, respond: (response: Response) => void) {
    const { by, method, url } = request;
    const isSlow = fault === 'slow' || fault === 'lost_reply' || fault === 'crash_after';
    this.#time.after(this.#faultyCalls.delayMs(isSlow ? SLOW_REQUEST_MS : this.#targetDelayMs), () => {
      const refusal = fault && REFUSALS[fault];
      if (refusal) this.systems.next(`${method} ${url.hostname}`, refusal);
      if (url.pathname.endsWith('/sys_user_group')) this.#renameGroups();
      this.systems.fetch(url, init).then((response) => {
        const task = response.ok && startsSession(request) ? this.systems.sessions.tasks.at(-1) : undefined;
        if (task) this.#observer.sessionStarted(request, task);
        if (response.ok)
          this.#observer.handled(request, this.systems.incidents.get(url.pathname.split('/').at(-1) ?? '')?.fields);
        if (fault === 'lost_reply') return;
        const received = fault === 'server_error_after' ? new Response('{}', { status: 502 }) : response;
        if (fault === 'pause') by.pause(this.#faultyCalls.pauseMs());
        this.#time.after(this.#faultyCalls.delayMs(this.#targetDelayMs), () =>
          by.resume(() => {
            if (received.status === TOO_MANY_REQUESTS) {
              this.#observer.retryAfter(request, this.#time.now() + RETRY_AFTER_SECONDS * 1000);
            }
            respond(received);
          }),
        );
      });
    });
  }

  /** Each lookup of the group by its name finds another group. */
  #renameGroups(): void {
    this.#lookups += 1;
    const sys_id = this.#lookups.toString(16).padStart(32, '0');
    this.systems.records.set('sys_user_group', new Map([[sys_id, { sys_id, name: GROUP_BY_NAME }]]));
  }

  #fail(by: Invocation, code: string, withinMs: readonly [number, number], reject: (error: unknown) => void): void {
    const error = new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) });
    this.#time.after(this.#faultyCalls.delayMs(withinMs), () => by.resume(() => reject(error)));
  }
}

function callerIn(headers: unknown): string {
  const authorization = (headers as Record<string, string>).authorization ?? '';
  const [scheme, value = ''] = authorization.split(' ');
  return scheme === 'Basic' ? (Buffer.from(value, 'base64').toString().split(':')[0] ?? '') : value;
}

const startsSession = ({ url, body }: TargetRequest): boolean =>
  url.hostname === 'sessions' && body?.method === 'SendMessage';

const bodyOf = (sent: unknown) => (typeof sent === 'string' ? JSON.parse(sent) : undefined);
