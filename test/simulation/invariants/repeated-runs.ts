import { SESSION_TOOL } from '../../../lambdas/connectors/session/session.ts';
import type { Plan } from '../../../lambdas/plan/plan.ts';
import type { RunChange } from '../../../lambdas/run/commit.ts';
import type { IntentReceipt, Receipt } from '../../../lambdas/run/receipt.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import { receiptKeyOf } from '../../../lambdas/run/step.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import type { TargetRequest } from '../environment/simulated-targets.ts';
import type { Report } from './report.ts';

type PlannedCall = Extract<Plan['steps'][number], { kind: 'call' }>;

/**
 * A request starts one run. A replay makes no write of its original again. A run that applies a plan writes what the plan
 * showed, under the policies and over the values that it showed.
 */
export class RepeatedRunInvariants {
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  readonly #runOf = new Map<string, string>();
  readonly #receipts = new Map<string, Receipt>();
  readonly #plans = new Map<string, Plan>();
  /** The fields of an incident that an invocation read last. */
  readonly #lastRead = new Map<string, Record<string, string>>();

  constructor(report: Report, store: MemoryRunStore) {
    this.#report = report;
    this.#store = store;
  }

  planned(plan: Plan): void {
    this.#plans.set(plan.planHash, plan);
  }

  created(runs: readonly Run[]): void {
    for (const { tenant, runId, request } of runs) {
      const asked = askedFor(request);
      if (asked === undefined) continue;
      const before = this.#runOf.get(`${tenant} ${asked}`);
      if (before !== undefined) this.#report('a repeated request starts one run', `${asked}: ${before}, ${runId}`);
      this.#runOf.set(`${tenant} ${asked}`, runId);
    }
  }

  /** The response to a request says that it has started this run. */
  responded(tenant: string, request: Run['request'], runId: string): void {
    const asked = askedFor(request);
    const started = this.#runOf.get(`${tenant} ${asked}`);
    if (started !== runId)
      this.#report('the response to a repeated request names its run', `${asked}: ${started}, ${runId}`);
  }

  committed({ run, receipts, steps }: RunChange): void {
    for (const { receipt } of receipts) {
      const undoes = steps.find(({ step }) => step.index === receipt.stepIndex)?.step.undoes;
      if (receipt.outcome === 'intent' && receipt.effect !== 'read' && undoes === undefined) {
        this.#checkReplay(run, receipt);
        this.#checkPlanned(run, receipt);
      }
    }
    for (const { receipt } of receipts) this.#receipts.set(`${receipt.tenant} ${receipt.key}`, receipt);
  }

  #checkReplay({ tenant, runId, request }: Run, intent: IntentReceipt): void {
    // The session of the original has ended, so its work needs another one. What the session writes are receipts of their own.
    if (!request?.replay || intent.tool === SESSION_TOOL) return;
    const steps = this.#store.inside.steps(tenant, request.replay.of);
    const original = steps.find(({ index }) => index === intent.stepIndex);
    const made = original && this.#receipts.get(`${tenant} ${receiptKeyOf(original)}`);
    if (made?.outcome !== 'succeeded' || keyOfAnyRun(made) !== keyOfAnyRun(intent)) return;
    this.#report('a replay makes no write of its original again', `${runId}/${intent.stepId}: ${made.key}`);
  }

  #checkPlanned(run: Run, intent: IntentReceipt): void {
    const plan = this.#planOf(run);
    if (!plan) return;
    const what = `${run.runId}/${intent.stepId}`;
    const shown = plan.steps.find((step): step is PlannedCall => step.kind === 'call' && step.id === intent.stepId);
    const step = this.#store.inside.steps(run.tenant, run.runId).find(({ index }) => index === intent.stepIndex);
    const fields = JSON.stringify(step?.governed?.request.action.fields);
    const sameFields = shown?.provisional || JSON.stringify(shown?.fields) === fields;
    if (shown?.target !== intent.target || !sameFields) {
      this.#report('a run that applies a plan writes only what it showed', `${what}: ${fields}`);
    }
    if (shown?.decision.policyHash !== intent.grounds?.policyHash) {
      this.#report('a run that applies a plan writes under its policies', what);
    }
  }

  handled({ by, method, url }: TargetRequest, fields: Record<string, string> | undefined): void {
    if (method === 'GET' && fields) this.#lastRead.set(`${by.id} ${url.pathname}`, { ...fields });
  }

  /** An invocation sends a planned update only after it has read the values that the plan showed, or the written ones. */
  sent({ by, method, url, body }: TargetRequest): void {
    if (method !== 'PATCH' || !body || 'work_notes' in body) return;
    const run = this.#store.inside.run(by.tenant, by.runId ?? '');
    const plan = run === undefined || run.rollback ? undefined : this.#planOf(run);
    const shown = plan?.steps.find(
      (step): step is PlannedCall => step.kind === 'call' && JSON.stringify(step.fields) === JSON.stringify(body),
    );
    const read = this.#lastRead.get(`${by.id} ${url.pathname}`);
    for (const [field, before] of Object.entries(shown?.before ?? {})) {
      if (read?.[field] === before || read?.[field] === body[field]) continue;
      const what = `${by.runId} writes ${field}, planned over ${before}, over ${read?.[field]}`;
      this.#report('a run that applies a plan refuses drift', what);
    }
  }

  #planOf({ request }: Run): Plan | undefined {
    return request?.planHash === undefined ? undefined : this.#plans.get(request.planHash);
  }
}

function askedFor(request: Run['request']): string | undefined {
  if (request?.rerunOf !== undefined) return `${request.actor}: rerun ${request.rerunOf}`;
  if (request?.replay) return `replay ${request.replay.of}`;
  return request?.planHash === undefined ? undefined : `apply ${request.planHash}`;
}

/** The key without the run and the step, which the keys of some writes contain. */
function keyOfAnyRun({ key, runId, stepId }: Receipt): string {
  const own = `:${runId}:${stepId}`;
  return key.endsWith(own) ? key.slice(0, -own.length) : key;
}
