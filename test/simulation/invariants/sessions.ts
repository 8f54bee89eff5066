import { hashOf } from '../../../lambdas/run/canonical-json.ts';
import type { RunChange } from '../../../lambdas/run/commit.ts';
import type { CommitEvent } from '../../../lambdas/run/events/events.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import { hasOpenSession } from '../../../lambdas/run/session.ts';
import { isFinished, receiptKeyOf } from '../../../lambdas/run/step.ts';
import type { Completion } from '../../../lambdas/run-changes/session/complete-session.ts';
import { type ActionProposal, actionRunId } from '../../../lambdas/run-changes/session/propose-action.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import type { FakeTask } from '../../fakes/targets/fake-a2a.ts';
import type { SessionReply } from '../actors/session-process.ts';
import type { TargetRequest } from '../environment/simulated-targets.ts';
import type { Situations } from '../situations.ts';
import type { Report } from './report.ts';
import type { Snapshot } from './run-history.ts';

const SESSION_HOST = 'sessions';
/** `run:{id}:session:{step}:{since}`, the key of a session. */
const SESSION_KEY = /^run:(run_?[^:]*):session:([^:]+):/;
const ONE_SESSION = 'a step starts one session';
const ENDS_ONCE = 'a session ends once: by its completion, by the finalizer or by a person';

export const isAboutSession = ({ url }: TargetRequest): boolean => url.hostname === SESSION_HOST;

interface RpcCall {
  method: string;
  params: { id?: string; message?: { messageId: string; contextId: string; parts: unknown[] } };
}

interface Known {
  clocksAreClose: boolean;
  situations: Situations;
  /** A start has reached the agent, by its receipt. */
  onStarted: (tenant: string, receiptKey: string) => void;
  /** The agent has lost the session: nobody can find it. */
  onGone: (tenant: string, receiptKey: string) => void;
}

/** Sessions start once, are prompted once, end once, are ended afterwards, and act only within their step. */
export class SessionInvariants {
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  readonly #known: Known;
  /** The session that a step has started, by the permission to start it. */
  readonly #starts = new Map<string, FakeTask>();
  /** What the first request of a start said. */
  readonly #prompts = new Map<string, string>();
  /** The tasks, by tenant and id, with the step that they work for. */
  readonly #tasks = new Map<string, { tenant: string; runId: string; step: string; task: FakeTask; key: string }>();
  readonly #endings = new Map<string, string>();
  /** Completions that the API has confirmed, by run and step. */
  readonly #confirmed = new Map<string, string>();

  constructor(report: Report, store: MemoryRunStore, known: Known) {
    this.#report = report;
    this.#store = store;
    this.#known = known;
  }

  sent(request: TargetRequest): void {
    const { method, params } = callOf(request) ?? {};
    const { tenant } = request.by;
    if (method === 'SendMessage' && params?.message) this.#checkStart(tenant, params.message, request);
    if (method === 'CancelTask') this.#checkCancel(tenant, params?.id ?? '');
  }

  /** A start has a committed intent, and every attempt of it says the same. */
  #checkStart(tenant: string, message: NonNullable<RpcCall['params']['message']>, request: TargetRequest): void {
    const [, runId = '', stepId = ''] = SESSION_KEY.exec(message.contextId) ?? [];
    const what = `${request.by.id} ${message.contextId}`;
    const step = this.#store.inside.steps(tenant, runId).find(({ id }) => id === stepId);
    const receipt = this.#store.inside.receipt(tenant, (step && receiptKeyOf(step)) ?? '');
    const isIntended = step?.status === 'running' && (receipt?.outcome === 'intent' || receipt?.outcome === 'unknown');
    if (!isIntended && this.#known.clocksAreClose) {
      this.#report('a session starts only with a committed intent', `${what}: ${step?.status}, ${receipt?.outcome}`);
    }
    const said = JSON.stringify(message);
    const first = this.#prompts.get(message.contextId) ?? said;
    this.#prompts.set(message.contextId, first);
    if (first !== said) this.#report('a repeated start says the same', what);
  }

  /** The worker ends a session only after its step. */
  #checkCancel(tenant: string, taskId: string): void {
    const known = this.#tasks.get(`${tenant} ${taskId}`);
    const step = known && this.#store.inside.steps(tenant, known.runId).find(({ id }) => id === known.step);
    if (!known || hasOpenSession(step)) this.#report('a session is ended only after its step', taskId);
    this.#known.situations.record('a session is ended');
  }

  /** The agent has started a task for this request. */
  started(request: TargetRequest, task: FakeTask): void {
    const { tenant } = request.by;
    const [, runId = '', stepId = ''] = SESSION_KEY.exec(task.contextId) ?? [];
    const step = this.#store.inside.steps(tenant, runId).find(({ id }) => id === stepId);
    const key = (step && receiptKeyOf(step)) ?? '';
    this.#tasks.set(`${tenant} ${task.id}`, { tenant, runId, step: stepId, task, key });
    this.#known.onStarted(tenant, key);
    const events = this.#store.inside.commits(tenant, runId).flatMap((commit) => commit.events);
    const retries = events.filter((event) => event.type === 'step.retry_requested' && event.step === stepId).length;
    const permission = `${tenant} ${runId} ${stepId} ${retries}`;
    const earlier = this.#starts.get(permission);
    this.#starts.set(permission, task);
    // An agent that has lost a session, so that nobody can find it, is asked for another.
    if (earlier && !earlier.isGone && this.#known.clocksAreClose) {
      this.#report(ONE_SESSION, `${permission}: ${earlier.id}, ${task.id}`);
    }
    if (task.messages.length !== 1) this.#report('a session is prompted once', task.id);
  }

  disappeared(tenant: string, task: FakeTask): void {
    task.isGone = true;
    this.#known.onGone(tenant, this.#tasks.get(`${tenant} ${task.id}`)?.key ?? '');
  }

  committed({ commit, creates, steps }: RunChange, before: Snapshot, after: Run): void {
    for (const event of commit.events) {
      if (event.type === 'session.started') this.#checkRecorded(event, after);
      if (event.type === 'session.completed' || event.type === 'session.lost' || event.type === 'session.canceled')
        this.#ended(event, event.type, after);
      if (event.type === 'step.failed' && event.error.code === 'SESSION_TIMED_OUT')
        this.#ended(event, 'session.timed_out', after);
      if (event.type === 'session.action_proposed') {
        const now = steps.find(({ step }) => step.index === event.index)?.step.session;
        const was = before.steps.find(({ index }) => index === event.index);
        if (!hasOpenSession(was)) this.#report('a session acts only while it is open', `${after.runId}/${event.step}`);
        if ((now?.actions.length ?? 0) > (now?.actionsMax ?? 0)) {
          this.#report('a session proposes only as many actions as its step allows', `${after.runId}/${event.step}`);
        }
        if (creates?.run.runId !== event.actionRunId)
          this.#report('an action is created with its proposal', after.runId);
        this.#known.situations.record('a session proposes an action');
      }
      if (event.type === 'session.action_refused') this.#known.situations.record('an action of a session is refused');
    }
  }

  /** What is recorded is the session that the agent has. */
  #checkRecorded({ step, index }: CommitEvent & { type: 'session.started' }, { tenant, runId }: Run): void {
    const { session } = this.#store.inside.steps(tenant, runId).find((each) => each.index === index) ?? {};
    this.#endings.delete(`${tenant} ${runId} ${index}`);
    this.#known.situations.record('a session starts');
    // Its command is its prompt: see CommandSessionInvariants.
    if (session?.isCommand) return;
    const known = this.#tasks.get(`${tenant} ${session?.sessionId}`);
    const contract = known?.task.messages[0]?.data;
    if (known?.runId !== runId || known.step !== step || contract?.completion_id !== session?.completionId) {
      this.#report('the recorded session is the one that was prompted', `${runId}/${step}`);
    }
  }

  #ended({ step, index }: { step: string; index: number }, how: string, { tenant, runId }: Run): void {
    const id = `${tenant} ${runId} ${index}`;
    const earlier = this.#endings.get(id);
    if (earlier !== undefined) this.#report(ENDS_ONCE, `${runId}/${step}: ${earlier}, ${how}`);
    this.#endings.set(id, how);
    if (how === 'session.completed') this.#known.situations.record('a session completes');
    if (how === 'session.canceled') this.#known.situations.record('a session is canceled');
    if (how === 'session.lost') this.#known.situations.record('a session is lost');
    if (how === 'session.timed_out') this.#known.situations.record('a session times out');
  }

  /** The API has responded to a completion: it is stored if and only if it was accepted. */
  completed(
    { tenant, runId, completion_id }: { tenant: string; runId: string; completion_id: string },
    { completionId, outcome, summary }: Completion,
    reply: Exclude<SessionReply<{ isRepeated: boolean }>, 'failed'>,
  ): void {
    const hash = hashOf({ outcome, summary, output: null });
    const step = this.#store.inside.steps(tenant, runId).find(({ session }) => session?.completionId === completion_id);
    const stored = step?.session?.completion;
    if ('refused' in reply) {
      this.#known.situations.record('a completion is refused');
      return;
    }
    if (completionId !== completion_id)
      this.#report('only its own session completes a step', `${runId} ${completionId}`);
    const id = `${tenant} ${runId} ${completionId}`;
    const other = this.#confirmed.get(id) ?? hash;
    this.#confirmed.set(id, hash);
    if (stored?.hash !== hash || other !== hash || !step || !isFinished(step)) {
      this.#report('an accepted completion counts', `${runId}: ${step?.status}, ${summary}`);
    }
    if (reply.result.isRepeated) this.#known.situations.record('a completion is repeated');
  }

  /** The API has responded to a proposal: the action exists if and only if it was accepted. */
  proposed(
    tenant: string,
    runId: string,
    { key, tool, input }: ActionProposal,
    reply: Exclude<SessionReply<string>, 'failed'>,
  ): void {
    if ('refused' in reply) return;
    const stepIndex = this.#store.inside
      .steps(tenant, runId)
      .find(({ session }) => session?.actions.includes(reply.result));
    const isOwn = stepIndex && actionRunId({ tenant, runId, stepIndex: stepIndex.index }, key) === reply.result;
    if (!isOwn || tool !== 'github.comment.create' || input.number !== undefined) {
      this.#report('a session acts only within its step', `${runId} ${tool} ${JSON.stringify(input)}`);
    }
  }

  /** Without faults, the agent was asked to end every session whose step has ended. */
  checkFinal(hadFaults: boolean): void {
    for (const { tenant, runId, step: stepId, task } of this.#tasks.values()) {
      const step = this.#store.inside.steps(tenant, runId).find(({ id }) => id === stepId);
      if (!step || !isFinished(step)) this.#report('a step with a session ends', `${runId}/${stepId}`);
      // With faults, it is asked at best: a lost message leaves the session to its agent.
      if (!hadFaults && task.cancelRequests === 0 && !task.isGone && step?.session?.sessionId === task.id) {
        this.#report('a session is ended after its step', `${runId}/${stepId}`);
      }
    }
  }
}

const callOf = ({ body }: TargetRequest): RpcCall | undefined => body as RpcCall | undefined;
