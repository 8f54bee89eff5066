import { type Decision, decide } from '../../../lambdas/approval/decide.ts';
import type { Role } from '../../../lambdas/people/rights.ts';
import type { ApprovalRequirement, PolicyDecision } from '../../../lambdas/policy/policy.ts';
import { type Approval, isOpen } from '../../../lambdas/run/approval.ts';
import { type Command, controlRun } from '../../../lambdas/run-changes/control/control-run.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { PEOPLE } from '../../approval/people.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { wholeRun } from '../../fakes/whole-run.ts';
import { SYS_ID, Workshop } from '../workshop.ts';

export const needsApproval = (requirement: Partial<ApprovalRequirement> = {}): PolicyDecision => ({
  ...ALLOWED,
  verdict: 'needs_approval',
  reasons: ['somebody must look at it'],
  requirement: { tier: 'medium', quorum: 1, groups: [], ...requirement },
});
export const DENIED: Extract<PolicyDecision, { verdict: 'deny' }> = {
  ...ALLOWED,
  verdict: 'deny',
  code: 'POLICY_DENIED',
  reasons: ['not on my watch'],
};

export const FAILED: typeof DENIED = { ...DENIED, code: 'POLICY_ERROR', reasons: ['the engine is missing'] };

export const ASSIGN = (more = '') => `
name: assign
${more}
steps:
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { category: network } } }
`;

/** A workshop with people, where policy requires approvals by default. */
export class GovernedWorkshop extends Workshop {
  async open(): Promise<this> {
    for (const person of PEOPLE) await this.definitions.savePerson('acme', person);
    this.policy.decision = () => needsApproval();
    return this;
  }

  /** Begins a run and works until it waits. */
  async upToGate(yaml: string, ...options: Parameters<Workshop['begin']> extends [string, ...infer R] ? R : never) {
    const message = await this.begin(yaml, ...options);
    await this.work(message);
    return { message, approval: await this.openApproval(message) };
  }

  async openApproval({ tenant, runId }: StepMessage): Promise<Approval> {
    const whole = await wholeRun(this.runs, tenant, runId);
    const open = whole?.approvals.filter(isOpen).at(-1);
    if (!open) throw new Error(`nothing waits: ${JSON.stringify(whole?.run)}`);
    return open;
  }

  /** In the console by default; with a role, by the API and a key for that role. */
  say(
    { tenant, approvalId, actionHash }: Approval,
    person: string,
    decision: Decision | Decision['kind'] = 'approve',
    { via = 'console', role, ...seen }: { via?: 'slack' | 'console'; role?: Role; actionHash?: string } = {},
  ) {
    const full = typeof decision === 'string' ? ({ kind: decision } as Decision) : decision;
    const by = role === undefined ? { via } : { via: 'api' as const, role };
    return decide(this.worker, { tenant, approvalId, person, decision: full, actionHash, ...seen, ...by });
  }

  command(message: StepMessage, command: Command) {
    return controlRun(this.worker, message, command, 'oscar');
  }

  /** Requests that change something outside. */
  writes() {
    return this.outside.calls.filter(({ name }) => !name.startsWith('GET'));
  }
}
