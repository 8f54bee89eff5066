import { placeOf } from '../../../lambdas/agents/assignment.ts';
import { builtInProfile, profileViolation } from '../../../lambdas/agents/profiles.ts';
import type { AssignmentStatement, CompleteRequest } from '../../../lambdas/agents/protocol.ts';
import type { Clock } from '../../../lambdas/entry/ports.ts';
import type { RunChange } from '../../../lambdas/run/commit.ts';
import type { CommitEvent } from '../../../lambdas/run/events/events.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import type { Situations } from '../situations.ts';
import type { Report } from './report.ts';
import type { Snapshot } from './run-history.ts';

type Result = typeof CompleteRequest._zod.output;

/** The only command that the staging profile of the simulation allows. */
export const ALLOWED_COMMAND = '/usr/bin/systemctl';
export const STAGING_PROFILE = {
  name: 'staging-standard' as const,
  allow: [{ executable: ALLOWED_COMMAND }],
  deny: [],
};

/** Commands run once, under the lease that their statement names, and their receipts say what the agent reported. */
export class AgentInvariants {
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  readonly #known: { clocksAreClose: boolean; time: Clock; situations: Situations; onStarted: (key: string) => void };
  /** How often a command of a step was started, by the permission that it was started with. */
  readonly #starts = new Map<string, number>();
  /** The output that an agent sent for an assignment. */
  readonly #outputs = new Map<string, string>();
  /** Assignments whose agent was restarted while the command ran, and said so. */
  readonly #unknown = new Set<string>();
  /** Steps whose agent was lost, and that no person has retried since. */
  readonly #lost = new Set<string>();

  constructor(
    report: Report,
    store: MemoryRunStore,
    known: { clocksAreClose: boolean; time: Clock; situations: Situations; onStarted: (key: string) => void },
  ) {
    this.#report = report;
    this.#store = store;
    this.#known = known;
  }

  /** A process of an agent starts the command of an assignment. */
  started({ bootId }: { bootId: string }, statement: AssignmentStatement): void {
    const { tenant, assignment_id, session_id, step_id, approval_id, lease_version, agent_id } = statement;
    const what = `${assignment_id} by ${agent_id} ${bootId}`;
    const place = placeOf(assignment_id);
    const row = place && this.#store.agents.peekAssignment(tenant, place);
    const isAcknowledged = row?.acknowledgedAt !== undefined && row.bootId === bootId && row.agentId === agent_id;
    if (!isAcknowledged || row.status === 'withdrawn' || row.status === 'refused') {
      this.#report('a command runs only after its acknowledgement', `${what}, which is ${row?.status}`);
    }
    const step = this.#store.inside.steps(tenant, session_id).find(({ id }) => id === step_id);
    const isHeld = step?.status === 'running' && step.leaseVersion === lease_version;
    if (!isHeld && this.#known.clocksAreClose) {
      this.#report('a command runs only under the lease that its statement names', `${what}, ${step?.status}`);
    }
    this.#countStart(statement, what);
    const lists = statement.sandbox_profile === STAGING_PROFILE.name ? STAGING_PROFILE : builtInProfile('dev-flex');
    if (profileViolation(lists, statement.command)) this.#report('a profile allows every command that runs', what);
    this.#known.onStarted(`${tenant} ${statement.idempotency_key}`);
    this.#known.situations.record(approval_id === null ? 'a command runs' : 'an approved command runs');
  }

  /** One approval allows one start. Without an approval, a step is started once, and once more for each retry. */
  #countStart({ tenant, session_id, step_id, approval_id }: AssignmentStatement, what: string): void {
    const commits = this.#store.inside.commits(tenant, session_id);
    const retries = commits.flatMap(({ events }) => events).filter((event) => isRetryOf(event, step_id)).length;
    const permission = `${tenant} ${session_id} ${step_id} ${approval_id ?? retries}`;
    const starts = (this.#starts.get(permission) ?? 0) + 1;
    this.#starts.set(permission, starts);
    if (starts > 1) this.#report('no command runs twice under one approval', `${what}: ${starts} times`);
  }

  ended({ assignment_id, output, status }: Result): void {
    if (status === 'unknown') this.#unknown.add(assignment_id);
    else this.#outputs.set(assignment_id, output.sha256);
  }

  /** The response to a result. */
  reported(tenant: string, { assignment_id, status }: Result, answer: 'accepted' | 'duplicate' | 'lease_lost'): void {
    const place = placeOf(assignment_id);
    if (status === 'unknown' && answer === 'accepted') {
      this.#known.situations.record('a restarted agent reports that a result is unknown');
      const row = place && this.#store.agents.peekAssignment(tenant, place);
      if (row?.status !== 'lost') this.#report(STAYS_UNKNOWN, `${assignment_id}, which is ${row?.status}`);
    }
    if (answer === 'duplicate') this.#known.situations.record('a result is reported twice');
    if (!place) this.#report('a result names its assignment', assignment_id);
  }

  committed(change: RunChange, before: Snapshot, after: Run): void {
    const { commit } = change;
    for (const event of commit.events) {
      const step = 'step' in event ? `${after.tenant} ${after.runId} ${event.step}` : '';
      if (event.type === 'step.retry_requested') this.#lost.delete(step);
      if (event.type === 'step.assigned') this.#checkAssigned(event, before, step);
      if (event.type === 'step.command_ended') this.#checkEnded(event, change, before);
      if (event.type === 'step.unassigned') this.#checkUnassigned(event, after);
      if (event.type === 'step.late_result') this.#known.situations.record('a late result is recorded');
      if (event.type === 'step.failed' && event.error.code === 'AGENT_LOST') {
        this.#lost.add(step);
        this.#known.situations.record('an agent is lost');
        this.#checkLost(event.index, change, before);
      }
    }
  }

  #checkAssigned(event: CommitEvent & { type: 'step.assigned' }, before: Snapshot, step: string): void {
    const was = before.steps.find(({ index }) => index === event.index);
    const place = placeOf(event.assignment);
    if (was?.status !== 'running' || was.leaseVersion !== event.leaseVersion || was.assigned) {
      this.#report('an assignment is acknowledged once, under its lease', `${event.assignment}, ${was?.status}`);
    }
    if (place?.leaseVersion !== event.leaseVersion) {
      this.#report('an assignment is acknowledged once, under its lease', `${event.assignment}, ${event.leaseVersion}`);
    }
    if (this.#lost.has(step)) this.#report('a lost command is assigned again only by a person', step);
    this.#known.situations.record('an assignment is acknowledged');
  }

  /** Results settle only the lease that they were reported under, and the receipt has the output that was sent. */
  #checkEnded(event: CommitEvent & { type: 'step.command_ended' }, { receipts }: RunChange, before: Snapshot): void {
    const was = before.steps.find(({ index }) => index === event.index);
    const place = placeOf(event.assignment);
    if (was?.status !== 'running' || was.leaseVersion !== place?.leaseVersion || !was.assigned) {
      this.#report('a result settles only its own lease', `${event.assignment} settled ${was?.leaseVersion}`);
    }
    const receipt = receipts.find(({ receipt: { key } }) => key === event.receiptKey)?.receipt;
    if (this.#unknown.has(event.assignment)) this.#report(STAYS_UNKNOWN, `${event.assignment} ended ${event.status}`);
    const sent = this.#outputs.get(event.assignment);
    if (sent === undefined || receipt?.command?.output.sha256 !== sent || event.outputSha256 !== sent) {
      this.#report('the receipt has the output digest that the agent sent', event.assignment);
    }
  }

  /** Its lease has ended, or the agent has said that it was restarted. Either way nobody knows what the command did. */
  #checkLost(index: number, { commit: { at }, receipts }: RunChange, before: Snapshot): void {
    const was = before.steps.find((step) => step.index === index);
    const isHeld = was?.status === 'running' && was.assigned !== undefined;
    const hasSaidSo = isHeld && this.#unknown.has(was.assigned?.assignmentId ?? '');
    if (!isHeld || (was.lease.expiresAt > at && !hasSaidSo)) {
      this.#report('an agent is lost only when its lease has ended', `${was?.id}, ${was?.status}`);
    }
    const receipt = isHeld ? receipts.find(({ receipt: { key } }) => key === was.receiptKey)?.receipt : undefined;
    if (receipt?.outcome !== 'unknown') this.#report(STAYS_UNKNOWN, `${was?.id}, ${receipt?.outcome}`);
  }

  /** An agent has no free slot only if it has that many open assignments. */
  #checkUnassigned(event: CommitEvent & { type: 'step.unassigned' }, { tenant, updatedAt }: Run): void {
    if (event.because === 'refused') this.#known.situations.record('an agent refuses an assignment');
    if (event.because === 'not_acknowledged') this.#known.situations.record('an assignment is withdrawn');
    if (event.because !== 'no_agent' || !event.reason.includes('has no free slot')) return;
    for (const agent of this.#store.agents.inside.agents()) {
      if (agent.tenant !== tenant || !event.reason.includes(agent.agentId)) continue;
      const open = [...this.#store.agents.inside.assignments()].filter(
        (each) => each.agentId === agent.agentId && each.tenant === tenant && this.#takesSlot(each, updatedAt),
      );
      if (open.length < (agent.registration?.slots ?? 0) && event.reason === `${agent.agentId} has no free slot`) {
        this.#report('slots of agents never leak', `${agent.agentId} has ${open.length} open assignments`);
      }
    }
  }

  /** It is open, or it ended so recently that its slot may not be free yet. */
  #takesSlot(
    { status, endedAt, acknowledgeBy }: { status: string; endedAt?: string; acknowledgeBy: string },
    at: string,
  ) {
    if (status === 'acknowledged') return true;
    const until = Date.parse(endedAt ?? acknowledgeBy) + SLOT_FREE_WITHIN_MS;
    return until > Date.parse(at);
  }

  /** When no work is left, no slot is taken. */
  checkFinal(): void {
    const now = new Date(this.#known.time.now()).toISOString();
    for (const { agentId, tenant, assignments } of this.#store.agents.inside.agents()) {
      for (const { assignmentId, until } of assignments) {
        const place = placeOf(assignmentId);
        const row = place && this.#store.agents.peekAssignment(tenant, place);
        if (until > now && row?.status !== 'acknowledged') {
          this.#report('slots of agents never leak', `${agentId} holds ${assignmentId} until ${until}`);
        }
      }
    }
  }
}

const STAYS_UNKNOWN = 'the outcome of a command whose agent is lost stays unknown';

/** A lease, and the largest difference of clocks. */
const SLOT_FREE_WITHIN_MS = 30_000 + 2 * 300_000;

const isRetryOf = (event: CommitEvent, step: string): boolean =>
  (event.type === 'step.retry_requested' && event.step === step) ||
  (event.type === 'step.retry_scheduled' && event.step === step && event.error.code === 'COMMAND_FAILED');
