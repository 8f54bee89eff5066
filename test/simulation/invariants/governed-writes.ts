import { findOperation } from '../../../lambdas/connectors/registry.ts';
import type { ProposedAction } from '../../../lambdas/policy/policy.ts';
import { hashOf } from '../../../lambdas/run/canonical-json.ts';
import type { Commit, RunChange } from '../../../lambdas/run/commit.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import type { Governed, Step } from '../../../lambdas/run/step.ts';
import type { SimulatedPolicy } from '../simulated-policy.ts';
import type { ApprovalsJudge } from './approvals.ts';
import type { Report } from './report.ts';

/** Every intent has a decision in its own commit, and an approval where policy or the write itself requires one. */
export class GovernedWritesJudge {
  readonly #report: Report;
  readonly #policy: SimulatedPolicy;
  readonly #approvals: ApprovalsJudge;
  /** By run and step, the hash of the input under which it was first proposed, or last edited. */
  readonly #inputs = new Map<string, string>();

  constructor(report: Report, policy: SimulatedPolicy, approvals: ApprovalsJudge) {
    this.#report = report;
    this.#policy = policy;
    this.#approvals = approvals;
  }

  committed({ run, commit, steps }: RunChange): void {
    for (const { step } of steps) this.#judgeInput(run, commit, step);
    for (const event of commit.events) {
      if (event.type !== 'write.intended') continue;
      const step = steps.find(({ step: { id } }) => id === event.step)?.step;
      const what = `${run.runId}/${event.step} at ${run.seq}`;
      if (!step?.governed) this.#report('no intent without a decision of policy', what);
      else this.#judgeIntent(run, commit, step, step.governed, event.requestHash);
    }
  }

  #judgeInput({ runId }: Run, { events }: Commit, step: Step): void {
    if (!('input' in step) || step.input === undefined || !step.governed) return;
    const [key, hash] = [`${runId}/${step.index}`, hashOf(step.input)];
    const edited = events.some((event) => event.type === 'approval.edited' && event.step === step.id);
    if (!edited && (this.#inputs.get(key) ?? hash) !== hash) {
      this.#report('the input of a step is fixed when it is first proposed', `${key}: ${JSON.stringify(step.input)}`);
    }
    this.#inputs.set(key, hash);
  }

  #judgeIntent(run: Run, commit: Commit, step: Step, governed: Governed, requestHash: string): void {
    const { request, decision, approvalId } = governed;
    const { action } = request;
    const what = `${run.runId}/${step.id} at ${run.seq}`;
    const decided = commit.events.findLast((event) => event.type === 'policy.decided' && event.step === step.id);
    if (decided?.type !== 'policy.decided') {
      this.#report('no intent without a decision of policy', what);
      return;
    }
    const { verdict, policyHash, actionHash } = decided;
    if (verdict === 'deny') this.#report('nothing is written that policy denies', what);
    if (!this.#policy.hasSaid(request, decision, approvalId !== undefined)) {
      this.#report('policy itself has decided, on the policies of the moment after an approval', what);
    }
    const same = verdict === decision.verdict && policyHash === decision.policyHash;
    if (!same || hashOf(action.fields) !== requestHash || actionHash !== hashOfAction(action, step, policyHash, run)) {
      this.#report('a decision is about what is written', what);
    }
    if (action.undo !== (step.undoes !== undefined)) this.#report('an undo is judged as one', what);
    if (asksPeople(action, verdict)) this.#judgeApproval(commit, step, approvalId, actionHash);
    if (run.workflow.name === 'one-approval-per-phase' && step.undoes === undefined && action.effect !== 'read') {
      this.#judgeApproval(commit, step, approvalId, actionHash);
    }
    if (run.workflow.name === 'model-chooses' && step.id === 'post') {
      this.#judgeApproval(commit, step, approvalId, actionHash);
      const said = approvalId === undefined ? undefined : this.#approvals.now(approvalId)?.action?.derived;
      if (!said?.some(({ field }) => field === 'channel')) {
        this.#report('people see when a model chose the target of a write', what);
      }
    }
  }

  #judgeApproval(commit: Commit, step: Step, approvalId: string | undefined, actionHash: string): void {
    const approval = approvalId === undefined ? undefined : this.#approvals.now(approvalId);
    const what = `${step.id} with ${approvalId}, ${approval?.status}`;
    const covered = approval?.phase?.writes.find(({ stepIndex }) => stepIndex === step.index)?.actionHash;
    const approved = approval?.stepIndex === step.index ? (approval.phase?.leadHash ?? approval.actionHash) : covered;
    if (approval?.status !== 'approved' || approved === undefined) {
      this.#report('no write without the people it needs', what);
      return;
    }
    if (approved !== actionHash) this.#report('an approval holds for what was approved', what);
    if (approval.expiresAt <= commit.at) this.#report('an approval holds until it expires', what);
  }
}

/** By the design, not by the engine's code: policy asks, the blast radius is high, or the write is destructive. */
function asksPeople({ effect, blastRadius, destructive }: ProposedAction, verdict: string): boolean {
  return verdict === 'needs_approval' || (effect !== 'read' && (blastRadius === 'high' || destructive));
}

function hashOfAction(
  { makers: _makers, ...action }: ProposedAction,
  step: Step,
  policyHash: string,
  { workflow }: Run,
): string {
  return hashOf({ action, input: 'input' in step ? step.input : undefined, policyHash, workflow });
}

export const isWrite = (tool: string): boolean => findOperation(tool)?.effect !== 'read';
