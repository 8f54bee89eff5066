import { createHash } from 'node:crypto';
import { findOperation } from '../../../lambdas/connectors/registry.ts';
import type { ProposedAction } from '../../../lambdas/policy/policy.ts';
import { canonicalJson, hashOf } from '../../../lambdas/run/canonical-json.ts';
import type { Commit, RunChange } from '../../../lambdas/run/commit.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import type { Governed, Step } from '../../../lambdas/run/step.ts';
import type { SimulatedPolicy } from '../environment/simulated-policy.ts';
import type { ApprovalInvariants } from './approvals.ts';
import type { Report } from './report.ts';

/** Every intent has a policy decision in its commit, and an approval if policy or the write requires one. */
export class GovernedWriteInvariants {
  readonly #report: Report;
  readonly #policy: SimulatedPolicy;
  readonly #approvals: ApprovalInvariants;
  /** By run and step, the hash of the input that was first proposed, or last edited. */
  readonly #inputs = new Map<string, string>();

  constructor(report: Report, policy: SimulatedPolicy, approvals: ApprovalInvariants) {
    this.#report = report;
    this.#policy = policy;
    this.#approvals = approvals;
  }

  committed({ run, commit, steps }: RunChange): void {
    for (const { step } of steps) this.#checkInput(run, commit, step);
    for (const event of commit.events) {
      if (event.type !== 'write.intended') continue;
      const step = steps.find(({ step: { id } }) => id === event.step)?.step;
      const what = `${run.runId}/${event.step} at ${run.seq}`;
      if (!step?.governed) this.#report('every intent has a policy decision', what);
      else this.#checkIntent(run, commit, step, step.governed, event.requestHash);
    }
  }

  #checkInput({ runId }: Run, { events }: Commit, step: Step): void {
    if (!('input' in step) || step.input === undefined || !step.governed) return;
    const [key, hash] = [`${runId}/${step.index}`, hashOf(step.input)];
    const edited = events.some((event) => event.type === 'approval.edited' && event.step === step.id);
    if (!edited && (this.#inputs.get(key) ?? hash) !== hash) {
      this.#report('the input of a step is fixed when it is first proposed', `${key}: ${JSON.stringify(step.input)}`);
    }
    this.#inputs.set(key, hash);
  }

  #checkIntent(run: Run, commit: Commit, step: Step, governed: Governed, requestHash: string): void {
    const { request, decision, approvalId } = governed;
    const { action } = request;
    const what = `${run.runId}/${step.id} at ${run.seq}`;
    const decided = commit.events.findLast((event) => event.type === 'policy.decided' && event.step === step.id);
    if (decided?.type !== 'policy.decided') {
      this.#report('every intent has a policy decision', what);
      return;
    }
    const { verdict, policyHash, actionHash } = decided;
    if (verdict === 'deny') this.#report('no denied write is made', what);
    if (!this.#policy.hasDecided(request, decision, approvalId !== undefined)) {
      this.#report('the policy engine decided, after an approval with the current policies', what);
    }
    const same = verdict === decision.verdict && policyHash === decision.policyHash;
    if (
      !same ||
      requestHashOf(action, run) !== requestHash ||
      actionHash !== hashOfAction(action, step, policyHash, run)
    ) {
      this.#report('a policy decision covers what is written', what);
    }
    if (action.undo !== (step.undoes !== undefined)) this.#report('policy knows that an undo is an undo', what);
    if (needsApproval(action, verdict)) this.#checkApproval(commit, step, approvalId, actionHash);
    if (run.workflow.name === 'one-approval-per-phase' && step.undoes === undefined && action.effect !== 'read') {
      this.#checkApproval(commit, step, approvalId, actionHash);
    }
    if (run.workflow.name === 'model-chooses-target' && step.id === 'post') {
      this.#checkApproval(commit, step, approvalId, actionHash);
      const derived = approvalId === undefined ? undefined : this.#approvals.now(approvalId)?.action?.derived;
      if (!derived?.some(({ field }) => field === 'channel')) {
        this.#report('approvers see when a model chose the target of a write', what);
      }
    }
  }

  #checkApproval(commit: Commit, step: Step, approvalId: string | undefined, actionHash: string): void {
    const approval = approvalId === undefined ? undefined : this.#approvals.now(approvalId);
    const what = `${step.id} with ${approvalId}, ${approval?.status}`;
    const covered = approval?.phase?.writes.find(({ stepIndex }) => stepIndex === step.index)?.actionHash;
    const approved = approval?.stepIndex === step.index ? (approval.phase?.leadHash ?? approval.actionHash) : covered;
    if (approval?.status !== 'approved' || approved === undefined) {
      this.#report('every write has the approval that it needs', what);
      return;
    }
    if (approved !== actionHash) this.#report('an approval covers only what was shown', what);
    if (approval.expiresAt <= commit.at) this.#report('an expired approval covers nothing', what);
  }
}

/** As the design says, without the engine's code: policy requires it, the blast radius is high, or the write is destructive. */
function needsApproval({ effect, blastRadius, destructive }: ProposedAction, verdict: string): boolean {
  return verdict === 'needs_approval' || (effect !== 'read' && (blastRadius === 'high' || destructive));
}

/** As docs/evidence-format.md says, without the engine's code. */
const digestOf = ({ salt = '' }: Run, value: unknown) =>
  createHash('sha256')
    .update(salt + canonicalJson(value ?? null))
    .digest('hex');
const digestsOf = ({ fields }: ProposedAction, run: Run) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, digestOf(run, value)]));
const requestHashOf = (action: ProposedAction, run: Run): string => hashOf(digestsOf(action, run));

function hashOfAction(action: ProposedAction, step: Step, policyHash: string, run: Run): string {
  const { makers: _makers, fields: _fields, ...facts } = action;
  const { name, version } = run.workflow;
  const input = digestOf(run, 'input' in step ? step.input : undefined);
  return hashOf({ action: facts, fields: digestsOf(action, run), input, policyHash, workflow: { name, version } });
}

export const isWrite = (tool: string): boolean => findOperation(tool)?.effect !== 'read';
