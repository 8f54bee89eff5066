import { APPROVAL_SCHEMA_VERSION, type Approval } from '../../lambdas/run/approval.ts';
import { hashOf } from '../../lambdas/run/canonical-json.ts';
import { type Commit, commitHash, genesisHash } from '../../lambdas/run/commit.ts';
import { later } from '../../lambdas/run/lease.ts';
import { type ActiveRun, RUN_DEADLINE_MS, RUN_SCHEMA_VERSION, type Trigger } from '../../lambdas/run/run.ts';
import type { Ingest } from '../../lambdas/run/run-store.ts';
import { STORY_BEGINS_AT } from './fake-clock.ts';

/** A run that intake has accepted: queued, with its first commit. */
export interface Accepted {
  run: ActiveRun;
  commit: Commit;
  trigger: Trigger;
  ingest: Ingest;
}

export interface AcceptedOptions {
  traceparent?: string;
  tenant?: string;
  runId?: string;
  key?: string;
  requestHash?: string;
  at?: string;
  dueAt?: string;
  expiresAt?: string;
  automation?: string;
  workflow?: string;
  subject?: string;
  title?: string;
  workspace?: string;
  trigger?: Partial<Trigger>;
  inputs?: Record<string, unknown>;
  inputsFrom?: Record<string, unknown>;
  terms?: ActiveRun['terms'];
  notify?: ActiveRun['notify'];
}

export function accepted(options: AcceptedOptions = {}): Accepted {
  const { tenant = 'acme', runId = 'run_00000001', at = STORY_BEGINS_AT } = options;
  const { key = `github:${runId}`, requestHash = 'hash-of-the-body', dueAt = later(at, 30_000) } = options;
  const trigger: Trigger = {
    source: 'github',
    event: 'issues.opened',
    fields: { title: 'Checkout fails', owner: 'octo-org', repo: 'payments', number: 7 },
    payload: { action: 'opened', issue: { number: 7, title: 'Checkout fails' } },
    receivedAt: at,
    ...options.trigger,
  };
  const workflow = { name: options.workflow ?? 'label-new-issue', version: 1 };
  const facts = { automation: options.automation ?? 'label-new-issue', workflow };
  const { source, event } = trigger;
  const unsealed: Omit<Commit, 'hash'> = {
    seq: 1,
    prevHash: genesisHash(tenant, runId),
    at,
    events: [{ type: 'run.accepted', ...facts, source, event, key, triggerHash: hashOf(trigger.payload) }],
  };
  const commit = { ...unsealed, hash: commitHash(unsealed) };
  const run: ActiveRun = {
    schemaVersion: RUN_SCHEMA_VERSION,
    tenant,
    runId,
    ...facts,
    workspace: options.workspace ?? 'default',
    writes: 0,
    trigger: { source, event, key },
    ...(options.inputs && { inputs: options.inputs }),
    ...(options.inputsFrom && { inputsFrom: options.inputsFrom }),
    ...(options.terms && { terms: options.terms }),
    ...(options.notify && { notify: options.notify }),
    ...(options.traceparent !== undefined && { traceparent: options.traceparent }),
    subject: options.subject ?? 'github:octo-org/payments#7',
    ...(options.title !== undefined && { enrichment: { title: options.title, links: [] } }),
    status: 'queued',
    seq: 1,
    headHash: commit.hash,
    createdAt: at,
    updatedAt: at,
    deadlineAt: later(at, RUN_DEADLINE_MS),
    dueAt,
  };
  const expiresAt = options.expiresAt ?? later(at, 24 * 60 * 60 * 1000);
  const record = { tenant, key, source, requestHash, runIds: [runId], createdAt: at, expiresAt };
  return { run, commit, trigger, ingest: { records: [record], trigger, runs: [{ run, commit }], at } };
}

/** An approval that was just requested. */
export function requestedApproval(
  { tenant, runId }: { tenant: string; runId: string },
  differing: Partial<Approval> = {},
): Approval {
  const requestedAt = differing.requestedAt ?? STORY_BEGINS_AT;
  return {
    schemaVersion: APPROVAL_SCHEMA_VERSION,
    approvalId: `${runId}.2-0`,
    tenant,
    runId,
    stepIndex: 0,
    stepId: 'gate',
    status: 'requested',
    revision: 1,
    requestedAt,
    remindAt: later(requestedAt, 15_000),
    slaAt: later(requestedAt, 30_000),
    expiresAt: later(requestedAt, 60_000),
    automation: 'label-new-issue',
    workflow: { name: 'label-new-issue', version: 1 },
    title: 'Checkout fails',
    asks: 'step',
    actionHash: 'hash-of-the-action',
    grounds: { policyHash: 'test', policies: [], reasons: [] },
    requirement: { tier: 'medium', quorum: 1, groups: [] },
    makers: [],
    votes: [],
    edits: [],
    channel: '#approvals',
    ...differing,
  };
}
