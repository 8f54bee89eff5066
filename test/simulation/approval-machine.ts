import { ESCALATION_STAGES, type EscalationStage } from '../../lambdas/approval/environment.ts';
import type { OutboxEntry } from '../../lambdas/outbox/outbox.ts';
import type { Functions } from './functions.ts';
import type { VirtualTime } from './virtual-time.ts';

/** As in lib/approval-flow.ts: a stage whose function fails is retried until the next one is due. */
const FIRST_RETRY_MS = 2_000;
const RETRY_BACKOFF = 2;
const LONGEST_RETRY_MS = 60_000;

type Start = Extract<OutboxEntry, { kind: 'start_approval' }>;

export interface Execution {
  approvalId: string;
  /** What it waits with now; every try has a token of its own, and those before are worth nothing. */
  token: string | undefined;
  ended: 'no' | 'woken' | 'found_closed' | 'time_is_up';
}

/** Step Functions: one execution for each name goes through the escalation stages until its token is used or it expires. */
export class ApprovalMachine {
  readonly executions = new Map<string, Execution>();
  readonly #time: VirtualTime;
  readonly #functions: () => Functions;
  /** Called when an execution ends without having been woken. */
  readonly #ended: (entry: Start, how: Execution['ended']) => void;

  constructor(time: VirtualTime, functions: () => Functions, ended: (entry: Start, how: Execution['ended']) => void) {
    this.#time = time;
    this.#functions = functions;
    this.#ended = ended;
  }

  start(entry: Start): void {
    const { approvalId } = entry;
    if (this.executions.has(approvalId)) return;
    const execution: Execution = { approvalId, token: undefined, ended: 'no' };
    this.executions.set(approvalId, execution);
    this.#time.after(10, () => this.#enterStage(execution, entry, 0));
  }

  /** False if nobody waits with this token any more. */
  answer(token: string): boolean {
    const [approvalId = ''] = token.split(' ');
    const execution = this.executions.get(approvalId);
    if (execution?.token !== token) return false;
    execution.token = undefined;
    execution.ended = 'woken';
    return true;
  }

  #enterStage(execution: Execution, entry: Start, at: number): void {
    const escalationStage = ESCALATION_STAGES[at];
    if (!escalationStage) {
      this.#end(execution, entry, 'time_is_up');
      return;
    }
    const { remindAt, slaAt, expiresAt } = entry.clocks;
    const dueAt = { notify: remindAt, remind: slaAt, escalate: expiresAt }[escalationStage];
    this.#hold(execution, entry, escalationStage, 1);
    this.#time.after(Date.parse(dueAt) - this.#time.now(), () => {
      if (execution.ended === 'no') this.#enterStage(execution, entry, at + 1);
    });
  }

  #hold(execution: Execution, entry: Start, escalationStage: EscalationStage, tries: number): void {
    const { id: entryId, tenant, runId, approvalId } = entry;
    const taskToken = `${approvalId} ${escalationStage} ${tries}`;
    execution.token = taskToken;
    const holding = { entryId, tenant, runId, approvalId, escalationStage, taskToken, retrying: tries > 1 };
    this.#functions().hold(holding, (ending) => {
      if (ending === 'returned' || execution.token !== taskToken) return;
      if (ending === 'closed') return this.#end(execution, entry, 'found_closed');
      const failed = `${taskToken} failed`;
      execution.token = failed;
      this.#time.after(Math.min(FIRST_RETRY_MS * RETRY_BACKOFF ** (tries - 1), LONGEST_RETRY_MS), () => {
        if (execution.token === failed) this.#hold(execution, entry, escalationStage, tries + 1);
      });
    });
  }

  #end(execution: Execution, entry: Start, ended: 'found_closed' | 'time_is_up'): void {
    execution.token = undefined;
    execution.ended = ended;
    this.#ended(entry, ended);
  }
}
