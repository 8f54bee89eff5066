import type { Approval, approvalRoutes } from '../../lambdas/api/contract/approvals.ts';
import type { automationRoutes } from '../../lambdas/api/contract/automations.ts';
import type { deadLetterRoutes, outboxRoutes } from '../../lambdas/api/contract/operations.ts';
import type { changeRoutes, peopleRoutes } from '../../lambdas/api/contract/people.ts';
import type { policyRoutes } from '../../lambdas/api/contract/policies.ts';
import type { ReceivedFrom } from '../../lambdas/api/contract/route.ts';
import type { Receipt, RunDetail, RunSummary, runRoutes, Step } from '../../lambdas/api/contract/runs.ts';
import type { planRoutes, workflowRoutes } from '../../lambdas/api/contract/workflows.ts';
import type { TenantPolicies } from '../../lambdas/policy/policy.ts';
import { EXIT, Failure, UsageError } from '../commands/failure.ts';

export type { RunDetail, RunSummary };
export type ShownStep = Step;
export type ShownReceipt = Receipt;
export type ShownApproval = Approval;
export type StepsPage = ReceivedFrom<typeof runRoutes.listRunSteps>;
export type RunPage = ReceivedFrom<typeof runRoutes.listRuns>;
export type RunEvents = ReceivedFrom<typeof runRoutes.listRunEvents>;
export type ApprovalPage = ReceivedFrom<typeof approvalRoutes.listApprovals>;
export type Decided = ReceivedFrom<typeof approvalRoutes.decideApproval>;
export type AutomationPage = ReceivedFrom<typeof automationRoutes.listAutomations>;
type Automation = ReceivedFrom<typeof automationRoutes.getAutomation>;
type Person = ReceivedFrom<typeof peopleRoutes.getPerson>;
/** A changed person, or the change that waits for a second owner. */
export type PersonChanged = ReceivedFrom<typeof peopleRoutes.savePerson>;
/** The new policies and the ones they replace. */
export type PublishedPolicies = ReceivedFrom<typeof policyRoutes.publishPolicies>;
export type ReplayPage = ReceivedFrom<typeof policyRoutes.replayPolicies>;
type Plan = ReceivedFrom<typeof planRoutes.simulateWorkflow>;

const RESPONSE_TIMEOUT_MS = 30_000;
const PARTIAL_CONTENT = 206;

export type StuckEntry = ReceivedFrom<typeof outboxRoutes.redriveOutbox>['entries'][number];

/** A retry may help. */
export class Unavailable extends Failure {
  constructor(message: string, options?: { cause?: unknown }) {
    super(EXIT.refused, message, options);
  }
}

export class Api {
  readonly #url: string;
  readonly #key: string;

  constructor({ url, key }: { url: string; key: string }) {
    this.#url = url;
    this.#key = key;
  }

  runs(query: { status?: string; limit?: string; cursor?: string }): Promise<RunPage> {
    return this.#get('/api/v1/runs', query);
  }

  run(runId: string): Promise<RunDetail> {
    return this.#get(`/api/v1/runs/${runId}`);
  }

  steps(runId: string, cursor: string): Promise<StepsPage> {
    return this.#get(`/api/v1/runs/${runId}/steps`, { cursor, limit: '100' });
  }

  events(runId: string, since: number): Promise<RunEvents> {
    return this.#get(`/api/v1/runs/${runId}/events`, { since: String(since) });
  }

  control(runId: string, command: string, body: unknown): Promise<RunSummary> {
    return this.#request(`/api/v1/runs/${runId}/${command}`, { method: 'POST', body: JSON.stringify(body) });
  }

  approvals(query: { limit?: string; cursor?: string }): Promise<ApprovalPage> {
    return this.#get('/api/v1/approvals', query);
  }

  approval(approvalId: string): Promise<ShownApproval> {
    return this.#get(`/api/v1/approvals/${approvalId}`);
  }

  decide(approvalId: string, body: unknown): Promise<Decided> {
    return this.#request(`/api/v1/approvals/${approvalId}/decision`, { method: 'POST', body: JSON.stringify(body) });
  }

  deadLetters(): Promise<ReceivedFrom<typeof deadLetterRoutes.countDeadLetters>> {
    return this.#get('/api/v1/dead-letters');
  }

  redrive(): Promise<ReceivedFrom<typeof deadLetterRoutes.redriveDeadLetters>> {
    return this.#request('/api/v1/dead-letters/redrive', { method: 'POST' });
  }

  redriveOutbox(body: { dryRun: boolean }): Promise<ReceivedFrom<typeof outboxRoutes.redriveOutbox>> {
    return this.#request('/api/v1/outbox/redrive', { method: 'POST', body: JSON.stringify(body) });
  }

  publishWorkflow(file: string): Promise<ReceivedFrom<typeof workflowRoutes.publishWorkflow>> {
    return this.#request('/api/v1/workflows', {
      method: 'POST',
      body: file,
      headers: { 'content-type': 'application/yaml' },
    });
  }

  simulateWorkflow(body: { workflow: string; source: string; event?: string; payload: unknown }): Promise<Plan> {
    return this.#request('/api/v1/workflows/simulate', { method: 'POST', body: JSON.stringify(body) });
  }

  automations(query: { limit?: string; cursor?: string }): Promise<AutomationPage> {
    return this.#get('/api/v1/automations', query);
  }

  automation(name: string): Promise<Automation> {
    return this.#get(`/api/v1/automations/${encodeURIComponent(name)}`);
  }

  saveAutomation(
    automation: { name: string } & Record<string, unknown>,
  ): Promise<ReceivedFrom<typeof automationRoutes.saveAutomation>> {
    const path = `/api/v1/automations/${encodeURIComponent(automation.name)}`;
    return this.#request(path, { method: 'PUT', body: JSON.stringify(automation) });
  }

  people(query: { limit?: string; cursor?: string }): Promise<ReceivedFrom<typeof peopleRoutes.listPeople>> {
    return this.#get('/api/v1/people', query);
  }

  person(id: string): Promise<Person> {
    return this.#get(`/api/v1/people/${encodeURIComponent(id)}`);
  }

  savePerson(id: string, body: unknown): Promise<PersonChanged> {
    return this.#request(`/api/v1/people/${encodeURIComponent(id)}`, { method: 'PUT', body: JSON.stringify(body) });
  }

  deletePerson(id: string): Promise<{ deleted: string }> {
    return this.#request(`/api/v1/people/${encodeURIComponent(id)}`, { method: 'DELETE' });
  }

  confirmPerson(id: string): Promise<Person> {
    return this.#request(`/api/v1/people/${encodeURIComponent(id)}/confirm`, { method: 'POST' });
  }

  saveDelegates(id: string, delegates: string[]): Promise<PersonChanged> {
    const path = `/api/v1/people/${encodeURIComponent(id)}/delegates`;
    return this.#request(path, { method: 'PUT', body: JSON.stringify({ delegates }) });
  }

  changes(query: { limit?: string; cursor?: string }): Promise<ReceivedFrom<typeof changeRoutes.listChanges>> {
    return this.#get('/api/v1/changes', query);
  }

  pendingChanges(query: {
    limit?: string;
    cursor?: string;
  }): Promise<ReceivedFrom<typeof changeRoutes.listPendingChanges>> {
    return this.#get('/api/v1/changes/pending', query);
  }

  confirmChange(changeId: string): Promise<Person> {
    return this.#request(`/api/v1/changes/pending/${encodeURIComponent(changeId)}/confirm`, { method: 'POST' });
  }

  rejectChange(changeId: string, reason: string): Promise<{ rejected: string }> {
    const path = `/api/v1/changes/pending/${encodeURIComponent(changeId)}/reject`;
    return this.#request(path, { method: 'POST', body: JSON.stringify({ reason }) });
  }

  publishPolicies(policies: TenantPolicies): Promise<PublishedPolicies> {
    return this.#request('/api/v1/policies', { method: 'PUT', body: JSON.stringify(policies) });
  }

  replayPolicies(body: { policies: TenantPolicies; since?: string; cursor?: string }): Promise<ReplayPage> {
    return this.#request('/api/v1/policies/replay', { method: 'POST', body: JSON.stringify(body) });
  }

  /** Downloads an evidence file in parts. */
  async evidenceFile(runId: string, file: string): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let from = 0; ; ) {
      const init = { headers: { 'x-api-key': this.#key, range: `bytes=${from}-` } };
      const { status, text, bytes, headers } = await send(this.#url, `/api/v1/runs/${runId}/evidence/${file}`, init);
      if (status !== PARTIAL_CONTENT) throw this.#failure(status, parse(text));
      parts.push(bytes);
      from += bytes.length;
      const size = Number(headers.get('content-range')?.split('/')[1]);
      if (bytes.length === 0 || !(from < size)) return Buffer.concat(parts);
    }
  }

  #get<T>(path: string, query: Record<string, string | undefined> = {}): Promise<T> {
    const search = new URLSearchParams(
      Object.entries(query).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, value] as [string, string]],
      ),
    );
    return this.#request(`${path}${search.size > 0 ? `?${search}` : ''}`, {});
  }

  async #request<T>(path: string, init: RequestInit): Promise<T> {
    const headers = { 'content-type': 'application/json', ...init.headers, 'x-api-key': this.#key };
    const { status, text } = await send(this.#url, path, { ...init, headers });
    const body = parse(text);
    if (status >= 200 && status < 300 && body) return body as T;
    throw this.#failure(status, body);
  }

  #failure(status: number, body: Record<string, unknown> | undefined): Failure {
    const problem = problemOf(body);
    // With a problem text the key was accepted, but the person lacks a right or policy denies.
    if (status === 401 || (status === 403 && problem === undefined)) {
      return new Failure(
        EXIT.refused,
        `${this.#url} rejected the API key; pass a valid one with --key or COUNTERSIGN_API_KEY`,
      );
    }
    if (status >= 500 || status === 429) {
      return new Unavailable(
        `${this.#url} responded with ${status}${problem ? `: ${problem}` : '; try again in a moment'}`,
      );
    }
    if (problem === undefined) {
      return new Failure(
        EXIT.refused,
        `${this.#url} is not a Countersign API (it responded with ${status}); check --url`,
      );
    }
    return status === 400 ? new UsageError(problem) : new Failure(EXIT.failed, problem);
  }
}

export interface ApiResponse {
  status: number;
  headers: Headers;
  bytes: Buffer;
  text: string;
}

export async function send(url: string, path: string, init: RequestInit): Promise<ApiResponse> {
  try {
    const response = await fetch(`${url}${path}`, { ...init, signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS) });
    const bytes = Buffer.from(await response.arrayBuffer());
    return { status: response.status, headers: response.headers, bytes, text: bytes.toString() };
  } catch (cause) {
    const late = cause instanceof Error && cause.name === 'TimeoutError';
    throw new Unavailable(
      late
        ? `${url} did not respond within ${RESPONSE_TIMEOUT_MS / 1000} s; try again, or pass the URL of a stage with --url`
        : `nothing responds at ${url}; start the local host with npm start, or pass the URL of a stage with --url`,
      { cause },
    );
  }
}

/** The detail of an `application/problem+json` response. */
export function problemOf(body: Record<string, unknown> | undefined): string | undefined {
  return typeof body?.detail === 'string' ? body.detail : undefined;
}

export function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
