import type * as z from 'zod';
import { registerAgent } from '../../../lambdas/agents/agent-lifecycle.ts';
import type { AgentCaller, SyncResult } from '../../../lambdas/agents/agent-requests.ts';
import { placeOf } from '../../../lambdas/agents/assignment.ts';
import type { AckResponse, AssignmentStatement, CompleteRequest } from '../../../lambdas/agents/protocol.ts';
import { handleBulk } from '../../../lambdas/api/bulk/bulk.ts';
import { applyPlan } from '../../../lambdas/api/definitions/apply-plan.ts';
import { replayOf, rerunOf } from '../../../lambdas/api/start/repeat-run.ts';
import { startOnce } from '../../../lambdas/api/start/start-once.ts';
import { announceApproval } from '../../../lambdas/approval/announce-approval.ts';
import { type Deciding, decide } from '../../../lambdas/approval/decide.ts';
import { type DigestRequest, postDigest } from '../../../lambdas/approval/digest/post-digest.ts';
import { publishDecision } from '../../../lambdas/approval/publish-decision.ts';
import { ApprovalClosed, type Waiting, waitForDecision } from '../../../lambdas/approval/wait-for-decision.ts';
import type { HttpEvent } from '../../../lambdas/entry/http.ts';
import { isoNow } from '../../../lambdas/entry/ports.ts';
import { sealAddendum } from '../../../lambdas/evidence/addendum/seal-addendum.ts';
import { sealRuns } from '../../../lambdas/evidence/bundle/seal-run.ts';
import { acceptDelivery } from '../../../lambdas/intake/accept-delivery.ts';
import type { Delivery } from '../../../lambdas/intake/delivery.ts';
import { publishedVersion } from '../../../lambdas/intake/start-automation.ts';
import { notifyRunEnd } from '../../../lambdas/notify/notify-run-end.ts';
import { postProgress } from '../../../lambdas/notify/post-progress.ts';
import type { StartApproval } from '../../../lambdas/outbox/outbox.ts';
import { appliedPlan } from '../../../lambdas/plan/applied-plan.ts';
import { planRun } from '../../../lambdas/plan/plan.ts';
import { PLAN_VALID_MS } from '../../../lambdas/plan/plan-store.ts';
import { runIdOf } from '../../../lambdas/run/approval.ts';
import { CountersignError } from '../../../lambdas/run/errors.ts';
import { deliveryKey } from '../../../lambdas/run/idempotency.ts';
import { later, WORKER_TIMEOUT_MS } from '../../../lambdas/run/lease.ts';
import { isTerminal, type Trigger } from '../../../lambdas/run/run.ts';
import { assignRun, releaseRun } from '../../../lambdas/run-changes/control/assign-run.ts';
import { type Command, controlRun } from '../../../lambdas/run-changes/control/control-run.ts';
import { resolveRun } from '../../../lambdas/run-changes/control/resolve-run.ts';
import { rollBackEndedRun } from '../../../lambdas/run-changes/control/rollback-ended-run.ts';
import { type Completion, completeSession } from '../../../lambdas/run-changes/session/complete-session.ts';
import { noteHeartbeat } from '../../../lambdas/run-changes/session/note-heartbeat.ts';
import { type ActionProposal, proposeAction } from '../../../lambdas/run-changes/session/propose-action.ts';
import { openSessionToken, type SessionToken } from '../../../lambdas/run-changes/session/session-token.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { fireSchedule } from '../../../lambdas/schedules/fire-schedule.ts';
import { receiveMessage } from '../../../lambdas/slack/thread/receive-message.ts';
import type { ThreadMessage } from '../../../lambdas/slack/thread/thread-runs.ts';
import { sweep } from '../../../lambdas/sweep/sweep.ts';
import { executorFor } from '../../../lambdas/worker/5-executor.ts';
import { acknowledgeAssignment } from '../../../lambdas/worker/agent/acknowledge-assignment.ts';
import { completeAssignment } from '../../../lambdas/worker/agent/complete-assignment.ts';
import { syncAgent } from '../../../lambdas/worker/agent/sync-agent.ts';
import { processRun } from '../../../lambdas/worker/process-run.ts';
import type { ApprovalFollow } from '../../fakes/memory/memory-outbox.ts';
import type { AgentProcess, Reply } from '../actors/agent-process.ts';
import type { EndedRunAction } from '../actors/ended-run-operators.ts';
import { REQUESTER, type Repeat } from '../actors/run-requesters.ts';
import type { SessionReply } from '../actors/session-process.ts';
import type { Observer } from '../observer.ts';
import { type Ending, Invocation } from './invocation.ts';
import { portsFor, SESSION_SECRET, type SharedServices } from './ports.ts';
import type { ReceivedSeal } from './seal-batches.ts';
import type { SeededRandom } from './seeded-random.ts';

const PUBLISHER = 'publisher';
const DIGESTER = 'digester';
/** The requests of these invocations are digests, not writes of runs. */
export const isDigester = ({ id }: Pick<Invocation, 'id'>): boolean =>
  id.startsWith(PUBLISHER) || id.startsWith(DIGESTER);

const ANNOUNCER = 'announcer';
/** Invocations that post the cards of new approvals. */
export const isAnnouncer = ({ id }: Pick<Invocation, 'id'>): boolean => id.startsWith(ANNOUNCER);

const NOTIFIER = 'notifier';
const EVENTS = 'slack events';
/** The requests of these invocations are messages about runs, not writes of runs. */
export const isNotifier = ({ id }: Pick<Invocation, 'id'>): boolean => id.startsWith(NOTIFIER) || id.startsWith(EVENTS);

/** As in sweep.lambda.ts. */
const SWEEP_ENDS_BEFORE_MS = 8_000;
/** A sandbox is used again within some minutes, or never. */
const THAW_MS = [1_000, 400_000] as const;

/** Errors that a person may get for a command. */
const REFUSALS = [
  'RUN_RESUME_FAILED',
  'APPROVAL_REQUIRED',
  'NOT_FOUND',
  'RUN_TERMINAL_STATE',
  'RUN_INVALID_TRANSITION',
  'CAP_EXCEEDED',
  'CONFLICT',
];
/** And for a request that starts a run. */
const START_REFUSALS = [...REFUSALS, 'OUTCOME_UNKNOWN', 'CONTEXT_MISSING', 'PLAN_DRIFTED', 'INPUT_INVALID'];
/** And for a decision. */
const DECISION_REFUSALS = [
  ...REFUSALS.filter((code) => code !== 'RUN_TERMINAL_STATE'),
  ...['APPROVAL_CLOSED', 'APPROVAL_STALE', 'APPROVAL_SELF', 'APPROVAL_FORBIDDEN', 'INPUT_INVALID', 'POLICY_DENIED'],
];

/** Errors that a session may get. */
const SESSION_REFUSALS = [
  'SESSION_CLOSED',
  'SESSION_STARTING',
  'COMPLETION_MISMATCH',
  'ACTION_NOT_ALLOWED',
  'IDEMPOTENCY_CONFLICT',
  'RUN_TERMINAL_STATE',
];

/** Commands that make their sender a maker of later writes. An approver of these writes sends them. */
const SENT_BY_APPROVER: readonly Command['kind'][] = ['signal', 'rollback', 'retry'];

export interface SealMessage {
  entryId: string;
  tenant: string;
  runId: string;
  /** Of a run that was not sealed soon. */
  again?: boolean;
  /** Of an addendum. */
  seq?: number;
  /** Only the output of a command is to be stored. Output itself is not simulated. */
  isOutput?: true;
}

/** The end of a run, or with `seq` its progress. */
export interface NoticeRequest {
  entryId: string;
  tenant: string;
  runId: string;
  seq?: number;
}

type Ports = ReturnType<typeof portsFor>;

const planner = (ports: Ports) => ({ ...ports, region: 'eu-west-1', hasTime: () => true });

/** The deployed functions: each invocation runs a real use case with its own ports. */
export class Functions {
  readonly #shared: SharedServices;
  readonly #observer: Observer;
  readonly #random: SeededRandom;
  readonly #options: { skewMs: number; outlivesTimeout: boolean };
  readonly #tenants: readonly string[];
  readonly #skews: number[];
  #count = 0;

  constructor(
    shared: SharedServices,
    observer: Observer,
    random: SeededRandom,
    options: { skewMs: number; outlivesTimeout: boolean; machines: number; tenants: readonly string[] },
  ) {
    this.#shared = shared;
    this.#observer = observer;
    this.#random = random;
    this.#options = options;
    this.#tenants = options.tenants;
    this.#skews = Array.from({ length: options.machines }, () => random.between(-options.skewMs, options.skewMs + 1));
  }

  processRun(message: StepMessage, ended: (ending: Ending) => void): void {
    const run = this.#shared.store.inside.run(message.tenant, message.runId);
    if (run && isTerminal(run)) this.#observer.situations.record('a message arrives after the end of its run');
    this.#invoke('worker', message, ended, (ports, by) =>
      processRun({ ...ports, executorFor, timeLeftMs: () => by.remainingMs }, message),
    );
  }

  sweep(ended: (ending: Ending) => void): void {
    this.#invoke('sweeper', { tenant: '' }, ended, async (ports, by) => {
      const { tenants } = await sweep({
        ...ports,
        tenants: this.#tenants,
        fireSchedule: (due) => fireSchedule(ports, due),
        hasTimeToRead: () => true,
        hasTimeToSend: () => by.remainingMs > SWEEP_ENDS_BEFORE_MS,
      });
      for (const [tenant, swept] of Object.entries(tenants)) {
        await ports.runs.recordSweep(tenant, { at: isoNow(ports.clock), ...swept });
      }
    });
  }

  /** Seals the runs of a batch together, and does the rest one by one. Only what failed is delivered again. */
  seal(batch: readonly ReceivedSeal[]): void {
    const [{ message: about }] = batch as [ReceivedSeal];
    const failed = new Set<SealMessage>();
    const ended = (ending: Ending) => {
      for (const { message, ended } of batch) ended(ending === 'returned' && failed.has(message) ? 'threw' : ending);
    };
    this.#invoke('sealer', about, ended, async (ports, by) => {
      // Texts change nothing of a run, so no fault of storing them is simulated.
      const sealer = { ...ports, texts: { keepTextsOf: async () => {} } };
      const note = (message: SealMessage, result: PromiseSettledResult<unknown> | undefined) => {
        if (result?.status !== 'rejected') return;
        failed.add(message);
        if (!by.isKilled) this.#observer.failed(by, result.reason);
      };
      const messages = batch.map(({ message }) => message);
      const runs = messages.filter(({ seq, isOutput }) => seq === undefined && !isOutput);
      if (runs.length > 1) this.#observer.situations.record('several runs are sealed together');
      for (const [index, result] of (await sealRuns(sealer, runs)).entries()) note(runs[index] as SealMessage, result);
      for (const message of messages.filter((each) => !runs.includes(each))) {
        const { seq, entryId } = message;
        const alone =
          seq === undefined ? ports.runs.completeOutboxEntry(entryId) : sealAddendum(sealer, { ...message, seq });
        note(message, (await Promise.allSettled([alone]))[0]);
      }
    });
  }

  announceApproval(entry: StartApproval, ended: (ending: Ending) => void): void {
    const { tenant, runId } = entry;
    this.#invoke(ANNOUNCER, { tenant, runId }, ended, (ports, by) => {
      const sleep = (ms: number) =>
        new Promise<void>((resolve) => this.#shared.time.after(ms, () => by.resume(() => resolve())));
      return announceApproval({ ...ports, pause: { random: ports.random, sleep } }, entry);
    });
  }

  waitForDecision(waiting: Waiting, ended: (ending: Ending | 'closed') => void): void {
    let closed = false;
    const wait = async (ports: Ports) => {
      await waitForDecision(ports, waiting).catch((error: unknown) => {
        if (!(error instanceof ApprovalClosed)) throw error;
        closed = true;
      });
    };
    // The run may end between two reads of it. The next try finds its approval closed.
    const ending = (how: Ending) => ended(closed && how === 'returned' ? 'closed' : how);
    this.#invoke('waiter', waiting, ending, wait, ['RUN_TERMINAL_STATE', 'CONFLICT']);
  }

  publishDecision(message: ApprovalFollow, ended: (ending: Ending) => void): void {
    this.#invoke(PUBLISHER, message, ended, (ports) => publishDecision(ports, message));
  }

  postDigest(request: DigestRequest, ended: (ending: Ending) => void): void {
    this.#invoke(DIGESTER, request, ended, (ports, by) =>
      postDigest({ ...ports, timeLeftMs: () => by.remainingMs }, request),
    );
  }

  notify(request: NoticeRequest, ended: (ending: Ending) => void): void {
    const { seq } = request;
    this.#invoke(NOTIFIER, request, ended, (ports, by) => {
      const notifier = { ...ports, messages: ports.noticeMessages, timeLeftMs: () => by.remainingMs };
      return seq === undefined ? notifyRunEnd(notifier, request) : postProgress(notifier, { ...request, seq });
    });
  }

  /** Slack sends a message of a person. `accepted`: the response is not an error. */
  receiveMessage(message: ThreadMessage, responded: (accepted: boolean) => void): void {
    let accepted = false;
    const receive = async (ports: Ports, by: Invocation) => {
      const threads = { ...ports, messages: ports.noticeMessages, timeLeftMs: () => by.remainingMs };
      accepted = (await receiveMessage(threads, message)) !== 'again';
    };
    this.#invoke(EVENTS, message, (ending) => responded(accepted && ending === 'returned'), receive);
  }

  /** A refused decision is a response, not a failure. */
  decide(deciding: Deciding, ended: (ending: Ending) => void): void {
    const { tenant, approvalId, person, decision } = deciding;
    const about = { tenant, runId: runIdOf(approvalId) };
    this.#invoke(`${person} sends ${decision.kind}:`, about, ended, async (ports) => {
      try {
        this.#observer.decided(deciding, await decide(ports, deciding));
      } catch (error) {
        if (!(error instanceof CountersignError) || !DECISION_REFUSALS.includes(error.code)) throw error;
        this.#observer.refused(deciding, error.code);
      }
    });
  }

  acceptDelivery(tenant: string, delivery: Delivery, requestHash: string, ended: (ending: Ending) => void): void {
    this.#invoke(
      'intake',
      { tenant },
      ended,
      async (ports) => {
        const { runIds } = await acceptDelivery(ports, tenant, delivery, requestHash);
        this.#observer.deliveries.accepted(tenant, delivery, runIds);
      },
      ['IDEMPOTENCY_CONFLICT'],
    );
  }

  command(target: StepMessage, command: Command, ended: (ending: Ending) => void): void {
    const named = `operator sends ${command.kind}:`;
    const actor = SENT_BY_APPROVER.includes(command.kind) ? 'ana' : 'operator';
    const refusals = command.kind === 'cancel_session' ? [...REFUSALS, 'SESSION_CLOSED', 'SESSION_STARTING'] : REFUSALS;
    this.#invoke(named, target, ended, (ports) => controlRun(ports, target, command, actor), refusals);
  }

  /** A person changes an ended run. They resolve a write by what they find at the target. */
  changeEndedRun(target: StepMessage, act: EndedRunAction, ended: (ending: Ending) => void): void {
    const actor = act === 'resolve' ? 'olivia' : 'ana';
    this.#invoke(
      `${actor} sends ${act}:`,
      target,
      ended,
      async (ports) => {
        switch (act) {
          case 'assign':
            return assignRun(ports, target, actor, actor);
          case 'release':
            return releaseRun(ports, target, actor);
          case 'rollback':
            return rollBackEndedRun(ports, target, { actor, rollbackRunId: ports.ids.next('run') });
          case 'resolve': {
            const writes = this.#observer.effects.findings(target);
            return resolveRun(ports, target, { outcome: 'failed', reason: 'as found', writes }, actor);
          }
        }
      },
      [...REFUSALS, 'INPUT_INVALID', 'CONTEXT_MISSING'],
    );
  }

  /** A person repeats an ended run, with the same key every time. */
  repeat({ tenant, runId }: StepMessage, repeat: Repeat, ended: (ending: Ending) => void): void {
    const caller = { tenant, person: REQUESTER, role: 'operator' as const };
    this.#start(repeat, tenant, ended, async (ports) => {
      const { status, body } = await startOnce(
        ports,
        { caller, requestId: `${repeat} ${runId}`, asked: [repeat, runId] },
        (client, requestId) => deliveryKey.api({ client, requestId }),
        () =>
          repeat === 'rerun'
            ? rerunOf(ports, caller, runId, { workflowVersion: 'newest' })
            : replayOf(ports, caller, runId, {}),
      );
      return { isNew: status === 201, run: body };
    });
  }

  /** A person plans a run and saves the plan. */
  plan(
    tenant: string,
    name: string,
    event: Omit<Trigger, 'receivedAt'>,
    saved: (planHash: string) => void,
    ended: (ending: Ending) => void,
  ): void {
    const plans = async (ports: Ports) => {
      const { workflow, version } = await publishedVersion(ports, tenant, { name });
      const automation = { name, workspace: 'first', workflow: { name, version } };
      const trigger = { ...event, receivedAt: new Date(ports.clock.now()).toISOString() };
      const asked = { tenant, automation: name, workspace: 'first', workflow, version, trigger };
      const plan = await planRun(planner(ports), asked);
      const { plannedAt } = plan;
      const stored = { savedBy: REQUESTER, plannedAt, expiresAt: later(plannedAt, PLAN_VALID_MS) };
      await ports.plans.savePlan(tenant, { plan: appliedPlan(plan), automation, trigger, ...stored });
      this.#observer.repeats.planned(plan);
      saved(plan.planHash);
    };
    this.#invoke('planner', { tenant }, ended, plans, START_REFUSALS);
  }

  applyPlan(tenant: string, planHash: string, ended: (ending: Ending) => void): void {
    const caller = { tenant, person: REQUESTER, role: 'operator' as const };
    this.#start('applier', tenant, ended, (ports) => applyPlan(planner(ports), caller, planHash));
  }

  /** A preview, or the next runs of a job. Few runs in each request, so that a job has several. */
  bulk<Response>(
    tenant: string,
    person: string,
    body: object,
    responded: (response: Response) => void,
    ended: (ending: Ending) => void,
  ): void {
    const event = {
      routeKey: 'POST /api/v1/runs/bulk',
      rawPath: '/api/v1/runs/bulk',
      headers: {},
      body: JSON.stringify(body),
      requestContext: { authorizer: { lambda: { tenant, person, role: 'owner' } } },
    } as unknown as HttpEvent;
    const act = async (ports: Ports) => {
      const shared = { changer: ports, starter: ports, batchRuns: 2, cursorSecret: async () => 'secret' };
      const { body: text } = await handleBulk({ ...ports, ...shared }, event);
      responded(JSON.parse(text ?? ''));
    };
    this.#invoke(`${person} `, { tenant }, ended, act, ['CONFLICT', 'BAD_CURSOR']);
  }

  registerAgent(process: AgentProcess, slots: number, reply: (reply: Reply<object>) => void): void {
    this.#serveAgent(process, 'register', undefined, reply, (ports, caller) =>
      registerAgent(ports, caller, {
        ...{ protocol: 1, agent_version: '1', boot_id: process.bootId, capabilities: [], slots },
        ...{ environments: ['dev', 'staging'], profiles: ['dev-flex', 'staging-standard'] },
        host: { platform: 'linux', arch: 'x64', node: '24' },
      }),
    );
  }

  syncAgent(process: AgentProcess, running: AssignmentStatement[], reply: (reply: Reply<SyncResult>) => void): void {
    const request = { boot_id: process.bootId, socket: false, violations: [] };
    const held = running.map(({ assignment_id, lease_version }) => ({ assignment_id, lease_version }));
    this.#serveAgent(process, 'sync', undefined, reply, (ports, caller) =>
      syncAgent(ports, caller, { ...request, running: held }),
    );
  }

  acknowledge(
    process: AgentProcess,
    { assignment_id, lease_version, session_id }: AssignmentStatement,
    refusal: 'unable' | undefined,
    reply: (reply: Reply<z.infer<typeof AckResponse>>) => void,
  ): void {
    const about = { assignment_id, lease_version };
    this.#serveAgent(process, 'ack', session_id, reply, (ports, caller) =>
      acknowledgeAssignment(
        ports,
        caller,
        refusal ? { ...about, accepted: false, refusal, reason: 'cannot' } : { ...about, accepted: true },
      ),
    );
  }

  complete(
    process: AgentProcess,
    result: typeof CompleteRequest._zod.output,
    reply: (reply: Reply<{ result: 'accepted' | 'duplicate' | 'lease_lost' }>) => void,
  ): void {
    const runId = placeOf(result.assignment_id)?.runId;
    this.#serveAgent(process, 'complete', runId, reply, (ports, caller) => completeAssignment(ports, caller, result));
  }

  /** A request of an agent, as the agent API serves it. An older process of the same agent is refused. */
  #serveAgent<T>(
    { agent: { tenant, agentId }, bootId }: AgentProcess,
    name: string,
    runId: string | undefined,
    reply: (reply: Reply<T>) => void,
    serve: (ports: Ports & { executorFor: typeof executorFor }, caller: AgentCaller) => Promise<T>,
  ): void {
    let response: Reply<T> = 'failed';
    const handle = async (ports: Ports) => {
      const agent = await ports.agents.agent(tenant, agentId);
      if (!agent) throw new Error(`${agentId} is not enrolled`);
      const isOlder = name !== 'register' && agent.registration?.bootId !== bootId;
      response = isOlder ? 'replaced' : await serve({ ...ports, executorFor }, { agent, bootId });
    };
    const about = { tenant, ...(runId !== undefined && { runId }) };
    const ended = (ending: Ending) => reply(ending === 'returned' ? response : 'failed');
    this.#invoke(`agent API ${name} of ${agentId}:`, about, ended, handle, ['CONFLICT', 'CONTEXT_MISSING']);
  }

  /** A session proposes an action; the reply has the id of its run. */
  propose(token: string, proposal: ActionProposal, reply: (reply: SessionReply<string>) => void): void {
    this.#serveSession(token, 'propose', reply, async (ports, session) => {
      const { action } = await proposeAction(ports, session, proposal);
      return action.run.runId;
    });
  }

  completeSession(
    token: string,
    completion: Completion,
    reply: (reply: SessionReply<{ isRepeated: boolean }>) => void,
  ): void {
    this.#serveSession(token, 'complete', reply, (ports, session) => completeSession(ports, session, completion));
  }

  heartbeat(token: string, hasEnded: boolean, reply: (reply: SessionReply<unknown>) => void): void {
    this.#serveSession(token, 'heartbeat', reply, (ports, session) => noteHeartbeat(ports, session, { hasEnded }));
  }

  /** A request of a session, as the API serves it. A refusal is a response. */
  #serveSession<T>(
    token: string,
    name: string,
    reply: (reply: SessionReply<T>) => void,
    serve: (ports: Ports, session: SessionToken) => Promise<T>,
  ): void {
    let response: SessionReply<T> = 'failed';
    // Never expires: to whom the request belongs, for the log of the simulation.
    const { tenant, runId } = openSessionToken(token, SESSION_SECRET, '') ?? { tenant: '', runId: '' };
    const handle = async (ports: Ports) => {
      const session = openSessionToken(token, SESSION_SECRET, new Date(ports.clock.now()).toISOString());
      if (!session) {
        response = { refused: 'UNAUTHORIZED' };
        return;
      }
      try {
        response = { result: await serve(ports, session) };
      } catch (error) {
        if (!(error instanceof CountersignError) || !SESSION_REFUSALS.includes(error.code)) throw error;
        response = { refused: error.code };
      }
    };
    const ended = (ending: Ending) => reply(ending === 'returned' ? response : 'failed');
    this.#invoke(`session API ${name}:`, { tenant, runId }, ended, handle, ['CONFLICT', 'CONTEXT_MISSING']);
  }

  #start(
    name: string,
    tenant: string,
    ended: (ending: Ending) => void,
    start: (ports: Ports) => ReturnType<typeof applyPlan>,
  ): void {
    const starts = async (ports: Ports) => {
      const { isNew, run } = await start(ports);
      this.#observer.started(tenant, run, isNew);
    };
    this.#invoke(name, { tenant }, ended, starts, START_REFUSALS);
  }

  #invoke(
    name: string,
    about: { tenant: string; runId?: string },
    ended: (ending: Ending) => void,
    handler: (ports: Ports, by: Invocation) => Promise<unknown>,
    expectedCodes: string[] = [],
  ): void {
    this.#count += 1;
    const machine = this.#random.between(0, this.#skews.length);
    const by = new Invocation(this.#shared.time, {
      id: `${name}${this.#count}`,
      ...about,
      machine,
      skewMs: this.#skews[machine] ?? 0,
      timeoutMs: WORKER_TIMEOUT_MS,
      outlivesTimeout: this.#options.outlivesTimeout,
    });
    by.onEnd((ending) => {
      if (ending === 'killed' && by.remainingMs <= 0) {
        this.#observer.situations.record('an invocation is killed when its time is up');
      }
      ended(ending);
    });
    const thawsAfterMs = this.#random.chance(0.5) ? this.#random.between(...THAW_MS) : undefined;
    const end = (ending: 'returned' | 'threw') => {
      if (!by.isKilled) this.#observer.returned(by);
      by.end(ending, thawsAfterMs);
    };
    handler(portsFor(this.#shared, by), by).then(
      () => end('returned'),
      (error: unknown) => {
        if (!by.isKilled) this.#observer.failed(by, error, ...expectedCodes);
        end('threw');
      },
    );
  }
}
