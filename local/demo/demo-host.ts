import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { RunDetail, RunEvents } from '../../bin/client/api-client.ts';
import { localSecret } from '../../bin/commands/local-stage.ts';
import { hasEnded } from '../../bin/commands/runs/run-status.ts';
import { signedHeaders } from '../../bin/commands/webhook/sign-delivery.ts';
import type { Commit } from '../../lambdas/run/commit.ts';
import type { RunStatus } from '../../lambdas/run/run.ts';
import type { FaultRuleInput, ListedFault } from '../aws/faults.ts';
import type { RecordedCall } from '../simulators/calls.ts';
import { SEEDED_INCIDENTS } from '../simulators/servicenow/seed.ts';
import type { SystemsState } from '../simulators/state.ts';
import type { Incident } from './incidents.ts';
import { ClaimFailed } from './narrator.ts';

const EVENTS = join(import.meta.dirname, '..', '..', 'events');
const POLL_EVERY_MS = 50;
const PATIENCE_MS = 60_000;
/** How long a warm function caches automations. */
const AUTOMATIONS_CACHED_MS = 60_000;

/** The simulated systems accept any user. */
const SIMULATED_LOGIN = `Basic ${Buffer.from('demo:demo').toString('base64')}`;

export const KEYS = {
  olivia: 'local-owner-key',
  ana: 'local-approver-key',
  ben: 'local-approver2-key',
  globex: 'local-globex-owner-key',
};

/** Everything that the demo does to the system. It uses HTTP, like any other client. */
export class DemoHost {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  /** Delivers a sample of `events/`, signed as its sender signs it. */
  deliver(sample: string) {
    return this.#send(sample.startsWith('github-') ? 'github' : 'servicenow', readFileSync(join(EVENTS, sample)));
  }

  /** Delivers an incident of the simulated ServiceNow, as its business rule does. */
  report({ number, sysId }: Incident, { operation = 'insert', by = 'chloe', ...fields }: Record<string, string> = {}) {
    const row = SEEDED_INCIDENTS.find((incident) => incident.number === number);
    const record = { ...row, sys_updated_by: by, ...fields };
    // The number of the change. A delivery with the same number is a repeat.
    const sys_mod_count = operation === 'insert' ? 0 : 1;
    const payload = { instance: 'acme', table: 'incident', operation, sys_id: sysId, sys_mod_count, record };
    return this.#send('servicenow', Buffer.from(JSON.stringify(payload)));
  }

  /** Delivers a new issue, whose run adds one label. */
  async openIssue(number: number): Promise<string> {
    const repository = { name: 'payments', full_name: 'octo-org/payments' };
    const issue = { number, title: `Payments fail in region ${number}`, user: { login: 'mona' }, labels: [] };
    const payload = { action: 'opened', issue, repository, sender: { login: 'mona' } };
    return (await this.#send('github', Buffer.from(JSON.stringify(payload)))).runId;
  }

  async #send(source: 'github' | 'servicenow', body: Buffer<ArrayBuffer>) {
    const secret = localSecret(source, 'acme');
    const headers = signedHeaders(source, body, { secret, event: 'issues', nowMs: await this.#now() });
    const response = await fetch(`${this.url}/webhooks/${source}/acme`, { method: 'POST', headers, body });
    const { runIds = [], deduplicated } = (await response.json()) as { runIds?: string[]; deduplicated?: boolean };
    const [runId] = runIds;
    if (runId === undefined) throw new ClaimFailed(`${source} starts a run`, 202, response.status);
    return { status: response.status, runIds, runId, deduplicated };
  }

  async run(runId: string): Promise<RunDetail> {
    return this.ask('GET', `/api/v1/runs/${runId}`);
  }

  async runIds(): Promise<string[]> {
    const { runs } = await this.ask<{ runs: { runId: string }[] }>('GET', '/api/v1/runs?limit=100');
    return runs.map(({ runId }) => runId);
  }

  /** The HTTP status of a request for a run with this key. */
  async statusForKey(runId: string, key: string): Promise<number> {
    return (await fetch(`${this.url}/api/v1/runs/${runId}`, { headers: { 'x-api-key': key } })).status;
  }

  /** Shows each commit after `since` until the run has ended. */
  async follow(runId: string, show: (commit: Commit) => void, since = 0): Promise<RunStatus> {
    let next = since;
    return this.until(`run ${runId} ends`, async () => {
      const page = await this.ask<RunEvents>('GET', `/api/v1/runs/${runId}/events?since=${next}`);
      page.commits.forEach(show);
      next = page.next;
      return !page.more && hasEnded(page.status) ? page.status : undefined;
    });
  }

  async hasStatus(runId: string, wanted: RunStatus): Promise<RunDetail> {
    return this.until(`run ${runId} is ${wanted}`, async () => {
      const run = await this.run(runId);
      return run.status === wanted ? run : undefined;
    });
  }

  async sealed(runId: string): Promise<RunDetail> {
    return this.until(`the evidence of ${runId} is sealed`, async () => {
      const run = await this.run(runId);
      return run.evidence ? run : undefined;
    });
  }

  /** Decides the approval that a run waits for. */
  async decide(runId: string, decision: 'approve' | 'reject', key: string): Promise<void> {
    const actionHash = (await this.run(runId)).approvals.at(-1)?.actionHash;
    await this.ask('POST', `/api/v1/runs/${runId}/${decision}`, { actionHash }, key);
  }

  /** The writes that the simulated systems received, in order. */
  async writes(): Promise<RecordedCall[]> {
    const { calls } = await this.ask<{ calls: RecordedCall[] }>('GET', '/_sim/calls');
    return calls.filter(({ method }) => method !== 'GET');
  }

  /** The group and the work notes of an incident. */
  async incident(sysId: string): Promise<{ group: string; workNotes: string[] }> {
    const { incidents } = await this.#world();
    const found = incidents.find(({ sys_id }) => sys_id === sysId);
    const notes = found?.journal.filter(({ element }) => element === 'work_notes') ?? [];
    return { group: found?.shown.assignment_group ?? '', workNotes: notes.map(({ value }) => value ?? '') };
  }

  /** Assigns an incident to another group, as a person in ServiceNow does. */
  async reassign(sysId: string, assignment_group: string): Promise<void> {
    await this.ask('PATCH', `/_sim/servicenow/api/now/table/incident/${sysId}`, { assignment_group });
  }

  async labels(number: number): Promise<string[]> {
    return (await this.issue(number))?.labels ?? [];
  }

  /** The labels and assignees of an issue in octo-org/payments. */
  async issue(number: number): Promise<{ labels: string[]; assignees: string[] } | undefined> {
    const { issues } = await this.#world();
    const found = issues.find((issue) => issue.repository === 'octo-org/payments' && issue.number === number);
    return found && { labels: found.labels, assignees: found.assignees };
  }

  /** Creates an automation, and waits until no function has the old list in its cache. */
  async automate(name: string, event: string, version: number): Promise<void> {
    const automation = { trigger: { source: 'servicenow', event }, workflow: { name, version } };
    await this.ask('PUT', `/api/v1/automations/${name}`, automation);
    await this.letTimePass(AUTOMATIONS_CACHED_MS + 1);
  }

  async breakOnce(fault: FaultRuleInput): Promise<void> {
    await this.ask('POST', '/_local/faults', fault);
  }

  async faultInjected(): Promise<void> {
    await this.until('the fault was injected', async () => {
      const { faults } = await this.ask<{ faults: ListedFault[] }>('GET', '/_local/faults');
      return faults.every(({ hits }) => hits > 0) || undefined;
    });
  }

  /** Only while no function works: functions use real time, so the lease of a write that is on its way would end too early. */
  async letTimePass(advanceMs: number): Promise<void> {
    await this.until('no function works', async () => {
      const { idle } = await this.ask<{ idle: boolean }>('GET', '/_local/idle');
      return idle || undefined;
    });
    await this.ask('POST', '/_local/clock', { advanceMs });
    await this.ask('POST', '/_local/sweep');
  }

  /** Asks until there is a result. A result that does not come is a failed claim. */
  async until<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
    const deadlineMs = performance.now() + PATIENCE_MS;
    for (;;) {
      const answer = await ask();
      if (answer !== undefined) return answer;
      if (performance.now() > deadlineMs) throw new ClaimFailed(what, `within ${PATIENCE_MS} ms`, 'not yet');
      await wait(POLL_EVERY_MS);
    }
  }

  async ask<T>(method: string, path: string, body?: unknown, key = KEYS.olivia): Promise<T> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        'content-type': 'application/json',
        ...(path.startsWith('/_sim/') ? { authorization: SIMULATED_LOGIN } : { 'x-api-key': key }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (response.ok) return (await response.json()) as T;
    throw new ClaimFailed(`${method} ${path} succeeds`, 200, `${response.status} ${await response.text()}`);
  }

  #world(): Promise<SystemsState> {
    return this.ask('GET', '/_sim/state');
  }

  async #now(): Promise<number> {
    return Date.parse((await this.ask<{ now: string }>('GET', '/_local/clock')).now);
  }
}
