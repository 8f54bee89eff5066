import type { Commit } from '../../../lambdas/run/commit.ts';
import type { Receipt } from '../../../lambdas/run/receipt.ts';
import type { RunStatus } from '../../../lambdas/run/run.ts';
import type { EvidenceRecord } from '../../../lambdas/run/run-store.ts';
import type { FaultRuleInput, ListedFault } from '../../../local/aws/faults.ts';
import type { RequestReport } from '../../../local/aws/request-counts.ts';
import type { UnusedGrant } from '../../../local/iam/iam.ts';
import type { FunctionStats } from '../../../local/lambda/functions.ts';
import type { RecordedCall } from '../../../local/simulators/calls.ts';
import {
  githubRequest,
  type Incident,
  incidentInserted,
  issueOpened,
  servicenowRequest,
  type WebhookRequest,
} from './deliveries.ts';
import { eventually, type Waiting } from './eventually.ts';
import { type HttpAnswer, httpRequest } from './http-request.ts';

export const ACME_KEY = 'local-owner-key';
export const APPROVER_KEY = 'local-approver-key';
export const GLOBEX_KEY = 'local-globex-owner-key';

/** A test that waits asks when the host has nothing to do, or after this time: a request in between costs more than what it asks for. */
const IDLE_WITHIN_MS = 300;
const ASK_ANYWAY_AFTER_MS = { first: 200, last: 1_000 };
const TERMINAL: RunStatus[] = ['succeeded', 'failed_terminal', 'needs_human', 'timed_out', 'canceled'];

export interface Answer<Body = unknown> extends HttpAnswer {
  body: Body;
}

export interface Accepted {
  runIds: string[];
  deduplicated: boolean;
}

export interface ListedRun {
  runId: string;
  status: RunStatus;
  automation: string;
  subject: string | null;
  createdAt: string;
  trigger: { source: string; event: string; key: string };
  error: { code: string; message: string } | null;
}

export interface ShownRun extends ListedRun {
  head: { seq: number; hash: string };
  trace: { id: string; url: string | null };
  steps: { id: string; status: string; attempt?: number; approvalId?: string }[];
  commits: Commit[];
  approvals: { actionHash: string }[];
  receipts: (Receipt & { stepId: string })[];
  evidence: EvidenceRecord | null;
}

/** What a person with curl can do to a host: webhooks, API, simulators, controls. */
export class HostClient {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  async send({ path, headers, body }: WebhookRequest): Promise<Answer<Accepted>> {
    return this.request('POST', path, { headers, body });
  }

  sendGithub(payload: unknown, options?: Parameters<typeof githubRequest>[1]): Promise<Answer<Accepted>> {
    return this.send(githubRequest(payload, options));
  }

  async sendServicenow(
    payload: unknown,
    options: Parameters<typeof servicenowRequest>[1] = {},
  ): Promise<Answer<Accepted>> {
    const atMs = options.atMs ?? (await this.now());
    return this.send(servicenowRequest(payload, { ...options, atMs }));
  }

  /** A new issue is opened; the id of the one run that labels it. */
  async openIssue(number: number, options?: Parameters<typeof githubRequest>[1]): Promise<string> {
    return onlyRun(await this.sendGithub(issueOpened(number), options));
  }

  /** The incident exists at ServiceNow, and its business rule reports it; the id of the one run that triages it. */
  async fileIncident(filed: Incident): Promise<string> {
    await this.createIncident(filed);
    return onlyRun(await this.sendServicenow(incidentInserted(filed)));
  }

  /** For tests about something else: policy allows every write. Call it before the first run is processed. */
  async trustAutomations(): Promise<void> {
    const files = {
      'trust.cedar': '@id("trust") @reason("tests") permit (principal, action == Action::"execute", resource);',
    };
    const { status, text } = await this.request('PUT', '/api/v1/policies', {
      headers: { 'x-api-key': ACME_KEY },
      body: JSON.stringify({ engine: 'cedar', files }),
    });
    if (status !== 200) throw new Error(`the policies were refused: ${status} ${text}`);
  }

  /** Approves the open approval of the run, as a person who may. */
  async approve(runId: string, key = APPROVER_KEY): Promise<void> {
    const { approvals } = await this.waitForRun(runId, ({ status }) => status === 'waiting_approval');
    const actionHash = approvals.at(-1)?.actionHash;
    const { status, text } = await this.command(`/runs/${runId}/approve`, { actionHash }, key);
    if (status !== 200) throw new Error(`the approval was refused: ${text}`);
  }

  async createIncident({ sysId, record }: Incident): Promise<void> {
    const { status, text } = await this.request('POST', '/_sim/servicenow/api/now/table/incident', {
      headers: { authorization: `Basic ${Buffer.from('admin:admin').toString('base64')}` },
      body: JSON.stringify({ sys_id: sysId, ...record }),
    });
    if (status !== 201) throw new Error(`the incident was not created: ${text}`);
  }

  api<Body = Record<string, unknown>>(path: string, key: string | undefined = ACME_KEY): Promise<Answer<Body>> {
    return this.request('GET', `/api/v1${path}`, { headers: key === undefined ? {} : { 'x-api-key': key } });
  }

  command<Body = Record<string, unknown>>(path: string, body: unknown = {}, key = ACME_KEY): Promise<Answer<Body>> {
    return this.request('POST', `/api/v1${path}`, { headers: { 'x-api-key': key }, body: JSON.stringify(body) });
  }

  async run(runId: string, key = ACME_KEY): Promise<ShownRun> {
    const { status, body, text } = await this.api<ShownRun>(`/runs/${runId}`, key);
    if (status !== 200) throw new Error(`GET run ${runId}: ${status} ${text}`);
    return body;
  }

  /** Every run of the tenant, page by page. */
  async allRuns(key = ACME_KEY): Promise<ListedRun[]> {
    const found: ListedRun[] = [];
    for (let cursor = ''; ; ) {
      const { body } = await this.api<{ runs: ListedRun[]; nextCursor: string | null }>(
        `/runs?limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
        key,
      );
      found.push(...body.runs);
      if (body.nextCursor === null) return found;
      cursor = body.nextCursor;
    }
  }

  /** Polls until the run is as wanted, by default ended and sealed. Failed requests are repeated. */
  async waitForRun(runId: string, wanted: (run: ShownRun) => boolean = isSealed): Promise<ShownRun> {
    let last: Answer<ShownRun> | undefined;
    const ask = async () => {
      last = await this.api<ShownRun>(`/runs/${runId}`);
      const { status, text, body } = last;
      if (status >= 500) return undefined;
      if (status !== 200) throw new Error(`GET run ${runId}: ${status} ${text}`);
      return wanted(body) ? body : undefined;
    };
    return this.eventually(`run ${runId}`, ask, { lastSeen: () => `The last answer: ${last?.status} ${last?.text}` });
  }

  /**
   * Tries until there is a result, each time functions have written to DynamoDB and the host is idle again. The host replies when
   * that is so: many requests while a test waits would take CPU time from what it waits for. What is not in DynamoDB is asked for
   * now and then.
   */
  eventually<T>(what: string, ask: () => Promise<T | undefined>, waiting: Waiting = {}): Promise<T> {
    let writes = -1;
    let waitMs = ASK_ANYWAY_AFTER_MS.first;
    const askWhenIdle = async () => {
      if (writes === -1) writes = await this.#writes(writes, 0);
      return ask();
    };
    const pause = async () => {
      const known = writes;
      writes = await this.#writes(known, waitMs);
      waitMs = writes === known ? Math.min(2 * waitMs, ASK_ANYWAY_AFTER_MS.last) : ASK_ANYWAY_AFTER_MS.first;
    };
    return eventually(what, askWhenIdle, { pause, ...waiting });
  }

  async #writes(after: number, waitMs: number): Promise<number> {
    const path = `/_local/writes?after=${after}&waitMs=${waitMs}&idleWithinMs=${IDLE_WITHIN_MS}`;
    return (await this.ask<{ writes: number }>('GET', path)).writes;
  }

  async calls(query: { system?: string; method?: string } = {}): Promise<RecordedCall[]> {
    return (await this.ask<{ calls: RecordedCall[] }>('GET', `/_sim/calls?${new URLSearchParams(query)}`)).calls;
  }

  async now(): Promise<number> {
    return Date.parse((await this.ask<{ now: string }>('GET', '/_local/clock')).now);
  }

  async advance(advanceMs: number): Promise<void> {
    await this.ask('POST', '/_local/clock', { advanceMs });
  }

  async sweep(): Promise<void> {
    await this.ask('POST', '/_local/sweep');
  }

  async fault(rule: FaultRuleInput): Promise<void> {
    await this.ask('POST', '/_local/faults', rule);
  }

  async faults(): Promise<ListedFault[]> {
    return (await this.ask<{ faults: ListedFault[] }>('GET', '/_local/faults')).faults;
  }

  async clearFaults(): Promise<void> {
    await this.ask('DELETE', '/_local/faults');
  }

  async simulatedFault(rule: Record<string, unknown>): Promise<void> {
    const { status, text } = await this.request('POST', '/_sim/faults', { body: JSON.stringify(rule) });
    if (status !== 201) throw new Error(`the fault was not taken: ${text}`);
  }

  requests(): Promise<RequestReport> {
    return this.ask('GET', '/_local/requests');
  }

  async resetRequests(): Promise<void> {
    await this.ask('DELETE', '/_local/requests');
  }

  functions(): Promise<Record<string, FunctionStats>> {
    return this.ask('GET', '/_local/functions');
  }

  async unusedGrants(): Promise<UnusedGrant[]> {
    return (await this.ask<{ unused: UnusedGrant[] }>('GET', '/_local/grants/unused')).unused;
  }

  async ask<Body>(method: string, path: string, body?: unknown): Promise<Body> {
    const answer = await this.request<Body>(method, path, {
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer.body;
  }

  async request<Body>(
    method: string,
    path: string,
    { headers = {}, body }: { headers?: Record<string, string>; body?: string } = {},
  ): Promise<Answer<Body>> {
    const sent = { method, headers: { 'content-type': 'application/json', ...headers }, body };
    const answer = await httpRequest(`${this.url}${path}`, sent);
    return { ...answer, body: parsed(answer.text) as Body };
  }
}

export function isTerminal({ status }: Pick<ListedRun, 'status'>): boolean {
  return TERMINAL.includes(status);
}

function isSealed(run: ShownRun): boolean {
  return isTerminal(run) && run.evidence !== null;
}

function onlyRun({ status, body, text }: Answer<Accepted>): string {
  const [runId, ...others] = body.runIds ?? [];
  if (status !== 202 || runId === undefined || others.length > 0) throw new Error(`not one run: ${status} ${text}`);
  return runId;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
