import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { RunDetail, RunEvents } from '../../bin/commands/api.ts';
import { hasEnded } from '../../bin/commands/run-words.ts';
import { localSecret, signedHeaders } from '../../bin/commands/sign-delivery.ts';
import type { Commit } from '../../lambdas/run/commit.ts';
import type { FaultRuleInput, ListedFault } from '../faults.ts';
import type { RecordedCall } from '../simulators/calls.ts';
import { ClaimFailed } from './narrator.ts';

const EVENTS = join(import.meta.dirname, '..', '..', 'events');
const POLL_EVERY_MS = 50;
const PATIENCE_MS = 15_000;

export const ACME_KEY = 'local-owner-key';
export const GLOBEX_KEY = 'local-globex-owner-key';

/** What the story does to the system, all of it over HTTP as anybody else would. */
export class DemoHost {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  /** Delivers a sample of `events/`, signed as ServiceNow signs it. */
  async deliverIncident(sample: string) {
    const body = readFileSync(join(EVENTS, sample));
    const secret = localSecret('servicenow', 'acme');
    const headers = signedHeaders('servicenow', body, { secret, event: '', nowMs: await this.#now() });
    const response = await fetch(`${this.#url}/webhooks/servicenow/acme`, { method: 'POST', headers, body });
    const { runIds = [], deduplicated } = (await response.json()) as { runIds?: string[]; deduplicated?: boolean };
    return { status: response.status, runIds, deduplicated };
  }

  async run(runId: string): Promise<RunDetail> {
    return this.#ask('GET', `/api/v1/runs/${runId}`);
  }

  async runIds(): Promise<string[]> {
    const { runs } = await this.#ask<{ runs: { runId: string }[] }>('GET', '/api/v1/runs?limit=100');
    return runs.map(({ runId }) => runId);
  }

  /** The status a caller with this key gets when asking for a run. */
  async statusForKey(runId: string, key: string): Promise<number> {
    return (await fetch(`${this.#url}/api/v1/runs/${runId}`, { headers: { 'x-api-key': key } })).status;
  }

  /** Shows each commit after `since` as it comes, until the run has ended. */
  async follow(runId: string, show: (commit: Commit) => void, since = 0): Promise<string> {
    let next = since;
    return this.until(`run ${runId} ends`, async () => {
      const page = await this.#ask<RunEvents>('GET', `/api/v1/runs/${runId}/events?since=${next}`);
      page.commits.forEach(show);
      next = page.next;
      return !page.more && hasEnded(page.status) ? page.status : undefined;
    });
  }

  /** What reached the simulated systems and was meant to change them, in order. */
  async writes(): Promise<RecordedCall[]> {
    const { calls } = await this.#ask<{ calls: RecordedCall[] }>('GET', '/_sim/calls');
    return calls.filter(({ method }) => method !== 'GET');
  }

  /** The work notes an incident has, as a person at ServiceNow sees them. */
  async workNotes(sysId: string): Promise<string[]> {
    const query = encodeURIComponent(`element_id=${sysId}^element=work_notes`);
    const { result } = await this.#ask<{ result: { value: string }[] }>(
      'GET',
      `/_sim/servicenow/api/now/table/sys_journal_field?sysparm_query=${query}`,
    );
    return result.map(({ value }) => value);
  }

  async breakOnce(fault: FaultRuleInput): Promise<void> {
    await this.#ask('POST', '/_local/faults', fault);
  }

  async faultStruck(): Promise<void> {
    await this.until('the fault strikes', async () => {
      const { faults } = await this.#ask<{ faults: ListedFault[] }>('GET', '/_local/faults');
      return faults.every(({ hits }) => hits > 0) || undefined;
    });
  }

  async letTimePass(advanceMs: number): Promise<void> {
    await this.#ask('POST', '/_local/clock', { advanceMs });
    await this.#ask('POST', '/_local/sweep');
  }

  /** Asks until there is an answer. One that does not come is a claim that failed. */
  async until<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
    const deadlineMs = performance.now() + PATIENCE_MS;
    for (;;) {
      const answer = await ask();
      if (answer !== undefined) return answer;
      if (performance.now() > deadlineMs) throw new ClaimFailed(what, `within ${PATIENCE_MS} ms`, 'not yet');
      await wait(POLL_EVERY_MS);
    }
  }

  async #now(): Promise<number> {
    return Date.parse((await this.#ask<{ now: string }>('GET', '/_local/clock')).now);
  }

  async #ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.#url}${path}`, {
      method,
      headers: {
        'content-type': 'application/json',
        'x-api-key': ACME_KEY,
        authorization: `Basic ${Buffer.from('demo:demo').toString('base64')}`,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (response.ok) return (await response.json()) as T;
    throw new ClaimFailed(`${method} ${path} answers`, 200, `${response.status} ${await response.text()}`);
  }
}
