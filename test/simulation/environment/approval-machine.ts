import { ESCALATION_STAGES, type EscalationStage } from '../../../lambdas/approval/environment.ts';
import type { OutboxEntry } from '../../../lambdas/outbox/outbox.ts';
import type { Functions } from './functions.ts';
import type { VirtualTime } from './virtual-time.ts';

/** As in lib/approval-flow.ts: a stage whose function fails is retried until the next one is due. */
const FIRST_RETRY_MS = 2_000;
const RETRY_BACKOFF = 2;
const LONGEST_RETRY_MS = 60_000;

const SHORTEST_STAGE_MS = 1_000;

type Start = Extract<OutboxEntry, { kind: 'start_approval' }>;

export interface Execution {
  approvalId: string;
  /** The token it waits for. Every try has its own token, and earlier ones are invalid. */
  token: string | undefined;
  ended: 'no' | 'token_used' | 'found_closed' | 'expired';
}

/** Step Functions: one execution for each name goes through the escalation stages until its token is used or it expires. */
export class ApprovalMachine {
  readonly executions = new Map<string, Execution>();
  readonly #time: VirtualTime;
  readonly #functions: () => Functions;
  /** Called when an execution ends although its token was not used. */
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

  /** False if no execution waits for this token. */
  useTaskToken(token: string): boolean {
    const [approvalId = ''] = token.split(' ');
    const execution = this.executions.get(approvalId);
    if (execution?.token !== token) return false;
    execution.token = undefined;
    execution.ended = 'token_used';
    return true;
  }

  #enterStage(execution: Execution, entry: Start, at: number): void {
    const escalationStage = ESCALATION_STAGES[at];
    if (!escalationStage) {
      this.#end(execution, entry, 'expired');
      return;
    }
    const { remindAt, slaAt, expiresAt } = entry.clocks;
    const dueAt = { notify: remindAt, remind: slaAt, escalate: expiresAt }[escalationStage];
    this.#wait(execution, entry, escalationStage, 1);
    // As `stageSeconds`: a stage that is due lasts a second.
    this.#time.after(Math.max(SHORTEST_STAGE_MS, Date.parse(dueAt) - this.#time.now()), () => {
      if (execution.ended === 'no') this.#enterStage(execution, entry, at + 1);
    });
  }

  #wait(execution: Execution, entry: Start, escalationStage: EscalationStage, tries: number): void {
    const { id: entryId, tenant, runId, approvalId } = entry;
    const taskToken = `${approvalId} ${escalationStage} ${tries}`;
    execution.token = taskToken;
    const waiting = { entryId, tenant, runId, approvalId, escalationStage, taskToken, retryCount: tries - 1 };
    this.#functions().waitForDecision(waiting, (ending) => {
      if (ending === 'returned' || execution.token !== taskToken) return;
      if (ending === 'closed') return this.#end(execution, entry, 'found_closed');
      const failed = `${taskToken} failed`;
      execution.token = failed;
      this.#time.after(Math.min(FIRST_RETRY_MS * RETRY_BACKOFF ** (tries - 1), LONGEST_RETRY_MS), () => {
        if (execution.token === failed) this.#wait(execution, entry, escalationStage, tries + 1);
      });
    });
  }

  #end(execution: Execution, entry: Start, ended: 'found_closed' | 'expired'): void {
    execution.token = undefined;
    execution.ended = ended;
    this.#ended(entry, ended);
  }
}
