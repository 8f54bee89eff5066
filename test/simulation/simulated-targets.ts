import type { Access } from '../../lambdas/connectors/connector.ts';
import { EXCHANGE_TIMEOUT_MS } from '../../lambdas/connectors/exchange.ts';
import { FakeOutside, type OutsideFault } from '../fakes/fake-outside.ts';
import { HOOKS_HOST } from '../fakes/http-through-fetch.ts';
import type { Crossings } from './crossings.ts';
import type { Fault } from './faults.ts';
import type { Invocation } from './invocation.ts';
import { GROUP_BY_NAME } from './third-parties.ts';
import type { VirtualTime } from './virtual-time.ts';

/** A request that was sent lands within ten seconds or never: the bound that the quarantine is built on. */
const LONG_FLIGHT_MS = [500, 9_900] as const;
const RETRY_AFTER_SECONDS = 7;
const TOO_MANY_REQUESTS = 429;

export interface OutsideRequest {
  by: Invocation;
  method: string;
  url: URL;
  body: Record<string, unknown> | undefined;
}

interface Watcher {
  sent(request: OutsideRequest): void;
  /** With the fields of the incident it was about, as they are now. */
  landed(request: OutsideRequest, fields: Record<string, string> | undefined): void;
  /** The target has asked not to be asked again before this time. */
  askedToWait(request: OutsideRequest, untilMs: number): void;
}

const REFUSALS: Partial<Record<Fault, OutsideFault>> = {
  rate_limited: { status: 429, retryAfterSeconds: RETRY_AFTER_SECONDS },
  server_error: { status: 503 },
  truncated: 'truncated',
};

/** The systems outside, seen through a network: requests fly, answers get lost, and who gives up waiting knows nothing. */
export class SimulatedOutside {
  readonly systems: FakeOutside;
  readonly #time: VirtualTime;
  readonly #crossings: Crossings;
  readonly #watcher: Watcher;
  readonly #farMs: readonly [from: number, to: number];
  readonly #callers = new Map<string, Invocation>();
  #lookups = 0;

  constructor(time: VirtualTime, crossings: Crossings, watcher: Watcher, farMs: readonly [from: number, to: number]) {
    this.systems = new FakeOutside(time);
    this.#time = time;
    this.#crossings = crossings;
    this.#watcher = watcher;
    this.#farMs = farMs;
  }

  /** Access whose credential names the invocation: only it reaches the target and identifies the caller. */
  accessFor(by: Invocation): Record<string, Access> {
    this.#callers.set(by.id, by);
    const { servicenow, github, slack, http } = this.systems.access();
    return {
      servicenow: { ...servicenow, credential: { username: by.id, password: 'x' } },
      github: { ...github, credential: { token: by.id } },
      slack: { ...slack, credential: { botToken: by.id } },
      http: { ...http, credential: { hosts: { [HOOKS_HOST]: { headers: { authorization: `Bearer ${by.id}` } } } } },
    };
  }

  readonly fetch: typeof fetch = (input, init = {}) =>
    new Promise<Response>((hear, giveUp) => {
      const by = this.#callers.get(callerIn(init.headers));
      if (!by) throw new Error('a request of nobody');
      // Its time is up: Lambda has killed it. A zombie that lingers goes on, and must see by itself that its time is up.
      if (by.isDead || (by.remainingMs <= 0 && !by.lingers)) return by.die();
      const url = new URL(String(input));
      const request: OutsideRequest = { by, method: init.method ?? 'GET', url, body: bodyOf(init.body) };
      const name = `${request.method} ${url.hostname}`;
      const fault = this.#crossings.decide(by, { kind: 'outside', name });
      by.underWay += 1;
      let heard = false;
      const once = (then: () => void) => {
        if (!heard) by.underWay -= 1;
        heard = true;
        then();
      };
      const resolve = (response: Response) => once(() => hear(response));
      const reject = (error: unknown) => once(() => giveUp(error));
      if (fault === 'crash_before') return by.die();
      if (fault === 'unreachable') return this.#fail(by, 'ECONNREFUSED', this.#farMs, reject);
      this.#watcher.sent(request);
      if (fault === 'lost_request') return this.#fail(by, 'UND_ERR_SOCKET', LONG_FLIGHT_MS, reject);
      if (fault === 'crash_after') by.die();
      if (fault === 'lost_reply') this.#fail(by, 'ECONNRESET', this.#farMs, reject);
      this.#fly(request, fault, init, resolve);
      // A paused caller does not notice that its request has timed out.
      if (fault === 'pause') return;
      this.#time.after(EXCHANGE_TIMEOUT_MS, () =>
        by.goOn(() => reject(new DOMException('The operation was aborted due to timeout', 'TimeoutError'))),
      );
    });

  #fly(request: OutsideRequest, fault: Fault | undefined, init: RequestInit, answer: (response: Response) => void) {
    const { by, method, url } = request;
    const long = fault === 'slow' || fault === 'lost_reply' || fault === 'crash_after';
    this.#time.after(this.#crossings.delayMs(long ? LONG_FLIGHT_MS : this.#farMs), () => {
      const refusal = fault && REFUSALS[fault];
      if (refusal) this.systems.next(`${method} ${url.hostname}`, refusal);
      if (url.pathname.endsWith('/sys_user_group')) this.#renameGroups();
      this.systems.fetch(url, init).then((response) => {
        if (response.ok)
          this.#watcher.landed(request, this.systems.incidents.get(url.pathname.split('/').at(-1) ?? '')?.fields);
        if (fault === 'lost_reply') return;
        const heard = fault === 'server_error_after' ? new Response('{}', { status: 502 }) : response;
        if (fault === 'pause') by.pause(this.#crossings.pauseMs());
        this.#time.after(this.#crossings.delayMs(this.#farMs), () =>
          by.goOn(() => {
            if (heard.status === TOO_MANY_REQUESTS) {
              this.#watcher.askedToWait(request, this.#time.now() + RETRY_AFTER_SECONDS * 1000);
            }
            answer(heard);
          }),
        );
      });
    });
  }

  /** The name of a group leads to another group at each lookup. */
  #renameGroups(): void {
    this.#lookups += 1;
    const sys_id = this.#lookups.toString(16).padStart(32, '0');
    this.systems.records.set('sys_user_group', new Map([[sys_id, { sys_id, name: GROUP_BY_NAME }]]));
  }

  #fail(by: Invocation, code: string, withinMs: readonly [number, number], reject: (error: unknown) => void): void {
    const error = new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) });
    this.#time.after(this.#crossings.delayMs(withinMs), () => by.goOn(() => reject(error)));
  }
}

function callerIn(headers: unknown): string {
  const authorization = (headers as Record<string, string>).authorization ?? '';
  const [scheme, value = ''] = authorization.split(' ');
  return scheme === 'Basic' ? (Buffer.from(value, 'base64').toString().split(':')[0] ?? '') : value;
}

const bodyOf = (sent: unknown) => (typeof sent === 'string' ? JSON.parse(sent) : undefined);
