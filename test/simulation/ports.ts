import type { TaskTokens } from '../../lambdas/approval/publish-decision.ts';
import type { Cards } from '../../lambdas/approval/wait-for-decision.ts';
import type { Connections } from '../../lambdas/connectors/connections.ts';
import type { Ids, Log } from '../../lambdas/entry/ports.ts';
import type { EvidenceStore, Signer } from '../../lambdas/evidence/evidence-store.ts';
import type { OutboxDispatcher } from '../../lambdas/outbox/outbox.ts';
import type { Definitions } from '../../lambdas/pipeline/definitions.ts';
import type { PlanStore } from '../../lambdas/plan/plan-store.ts';
import type { Policy } from '../../lambdas/policy/policy.ts';
import type { Approval } from '../../lambdas/run/approval.ts';
import type { RunChange } from '../../lambdas/run/commit.ts';
import type { CommitResult, Ingest, IngestResult, RunStore } from '../../lambdas/run/run-store.ts';
import type { StepMessage, StepQueue } from '../../lambdas/run-changes/step-queue.ts';
import type { ScheduleStore } from '../../lambdas/schedules/schedule-store.ts';
import { allOf } from '../fakes/all-of.ts';
import { MemoryConnections } from '../fakes/memory-connections.ts';
import type { MemoryRunStore } from '../fakes/memory-run-store.ts';
import { OwnThreadExpressions } from '../fakes/own-thread-expressions.ts';
import type { Crossings } from './crossings.ts';
import type { CallKind, Fault } from './faults.ts';
import type { Invocation } from './invocation.ts';
import type { SimulatedPolicy } from './simulated-policy.ts';
import type { SimulatedOutside } from './simulated-targets.ts';
import type { Situations } from './situations.ts';
import type { StaleViews } from './stale-views.ts';
import type { VirtualTime } from './virtual-time.ts';

/** What all invocations of a world share. */
export interface Surroundings {
  time: VirtualTime;
  crossings: Crossings;
  store: MemoryRunStore;
  definitions: Definitions;
  plans: PlanStore;
  evidence: EvidenceStore;
  signer: Signer;
  outside: SimulatedOutside;
  policy: SimulatedPolicy;
  /** Wakes the approval machine that waits with a token; false if none does. */
  wake(taskToken: string): boolean;
  ids: Ids;
  random: () => number;
  views: StaleViews;
  /** An attempt is over before a renewal is due; where that is to be tried, renewals come so many times as often. */
  renewsTimesAsOften: number;
  /** Where messages end up, with the faults that are theirs. */
  stepQueue: { send(message: { tenant: string; runId: string }, delayMs: number, fault: Fault | undefined): void };
  outbox: { dispatch(entry: Parameters<OutboxDispatcher['dispatch']>[0], fault: Fault | undefined): void };
  watcher: {
    committing(by: Invocation, change: RunChange, commit: () => Promise<CommitResult>): Promise<CommitResult>;
    ingesting(ingest: Ingest, write: () => Promise<IngestResult>): Promise<IngestResult>;
    sealing(key: string, document: Buffer): void;
    held(before: Approval, changes: Partial<Approval>): void;
    tokenAnswered(decision: Parameters<TaskTokens['answer']>[1], somebodyWaited: boolean): void;
    situations: Situations;
    complained(by: Invocation, message: string, error: unknown): void;
  };
}

/** The ports of one invocation: the real use cases see nothing else of the world. */
export function portsOf(around: Surroundings, by: Invocation) {
  const { crossings, store, definitions, views, watcher } = around;
  const through =
    <Arguments extends unknown[], Result>(
      kind: CallKind,
      name: string,
      effect: (fault: Fault | undefined, ...args: Arguments) => Promise<Result>,
    ) =>
    (...args: Arguments) =>
      crossings.cross(by, { kind, name }, (fault) => effect(fault, ...args));
  const at = <Arguments extends unknown[], Result>(
    kind: CallKind,
    name: string,
    effect: (...args: Arguments) => Promise<Result>,
  ) => through<Arguments, Result>(kind, name, (_fault, ...args) => effect(...args));
  const view = <Arguments extends unknown[], Result>(name: string, read: (...args: Arguments) => Promise<Result>) =>
    through<Arguments, Result>('index', name, (fault, ...args) => {
      if (fault === 'stale') watcher.situations.meet('an index gives a stale answer');
      return views.read(name, args, fault, () => read(...args));
    });

  const runs: RunStore = {
    ingest: at('store', 'ingest', (ingest: Ingest) => watcher.ingesting(ingest, () => store.ingest(ingest))),
    commit: at('store', 'commit', (change: RunChange) => watcher.committing(by, change, () => store.commit(change))),
    renewLease: at('store', 'renewLease', async (...args: Parameters<RunStore['renewLease']>) => {
      const renewed = await store.renewLease(...args);
      watcher.situations.meet(renewed ? 'a lease is renewed' : 'a renewal of a lost lease is refused');
      return renewed;
    }),
    load: at('store', 'load', (...args: Parameters<RunStore['load']>) => store.load(...args)),
    async *everyRow(...args) {
      yield* await at('store', 'everyRow', () => allOf(store.everyRow(...args)))();
    },
    listCommits: at('store', 'listCommits', (...args: Parameters<RunStore['listCommits']>) =>
      store.listCommits(...args),
    ),
    receipts: at('store', 'receipts', (...args: Parameters<RunStore['receipts']>) => store.receipts(...args)),
    approval: at('store', 'approval', (...args: Parameters<RunStore['approval']>) => store.approval(...args)),
    approvals: at('store', 'approvals', (...args: Parameters<RunStore['approvals']>) => store.approvals(...args)),
    evidence: at('store', 'evidence', (...args: Parameters<RunStore['evidence']>) => store.evidence(...args)),
    reruns: at('store', 'reruns', (...args: Parameters<RunStore['reruns']>) => store.reruns(...args)),
    idempotencyRecord: at('store', 'idempotencyRecord', (...args: Parameters<RunStore['idempotencyRecord']>) =>
      store.idempotencyRecord(...args),
    ),
    postponeRun: at('store', 'postponeRun', (...args: Parameters<RunStore['postponeRun']>) => {
      if (args[0].sweeps > 1) watcher.situations.meet('a run is swept again and again');
      return store.postponeRun(...args);
    }),
    outboxEntries: at('store', 'outboxEntries', (...args: Parameters<RunStore['outboxEntries']>) =>
      store.outboxEntries(...args),
    ),
    bumpOutbox: at('store', 'bumpOutbox', (...args: Parameters<RunStore['bumpOutbox']>) => {
      watcher.situations.meet('the sweeper sends an outbox entry again');
      return store.bumpOutbox(...args);
    }),
    stuckOutbox: at('store', 'stuckOutbox', (...args: Parameters<RunStore['stuckOutbox']>) =>
      store.stuckOutbox(...args),
    ),
    redriveOutbox: at('store', 'redriveOutbox', (...args: Parameters<RunStore['redriveOutbox']>) =>
      store.redriveOutbox(...args),
    ),
    failOutbox: at('store', 'failOutbox', (...args: Parameters<RunStore['failOutbox']>) => store.failOutbox(...args)),
    completeSeal: at('store', 'completeSeal', (...args: Parameters<RunStore['completeSeal']>) => {
      const [, tenant, runId] = args;
      if (store.inside.evidence(tenant, runId)) watcher.situations.meet('evidence is sealed a second time');
      return store.completeSeal(...args);
    }),
    expireRun: at('store', 'expireRun', () => store.expireRun()),
    completeOutboxEntry: at('store', 'completeOutboxEntry', (entryId: string) => store.completeOutboxEntry(entryId)),
    storeTaskToken: at('store', 'storeTaskToken', async (...args: Parameters<RunStore['storeTaskToken']>) => {
      const [, read, changes] = args;
      const held = await store.storeTaskToken(...args);
      if (held) watcher.held(read, changes);
      return held;
    }),
    countPendingApprovals: at('store', 'countPendingApprovals', (tenant: string) =>
      store.countPendingApprovals(tenant),
    ),
    taskToken: at('store', 'taskToken', (...args: Parameters<RunStore['taskToken']>) => store.taskToken(...args)),
    addenda: view('addenda', (...args: Parameters<RunStore['addenda']>) => store.addenda(...args)),
    closedApprovals: view('closedApprovals', (...args: Parameters<RunStore['closedApprovals']>) =>
      store.closedApprovals(...args),
    ),
    pendingApprovals: view('pendingApprovals', (...args: Parameters<RunStore['pendingApprovals']>) =>
      store.pendingApprovals(...args),
    ),
    due: view('due', (...args: Parameters<RunStore['due']>) => store.due(...args)),
    waitingLine: view('waitingLine', (...args: Parameters<RunStore['waitingLine']>) => store.waitingLine(...args)),
    listRuns: view('listRuns', (...args: Parameters<RunStore['listRuns']>) => store.listRuns(...args)),
    someRuns: view('someRuns', (...args: Parameters<RunStore['someRuns']>) => store.someRuns(...args)),
    openOutbox: view('openOutbox', (...args: Parameters<RunStore['openOutbox']>) => store.openOutbox(...args)),
    lastSweep: view('lastSweep', (tenant: string) => store.lastSweep(tenant)),
    recordSweep: at('store', 'recordSweep', (...args: Parameters<RunStore['recordSweep']>) =>
      store.recordSweep(...args),
    ),
    countRuns: view('countRuns', (...args: Parameters<RunStore['countRuns']>) => store.countRuns(...args)),
    runIdsStartingWith: view('runIdsStartingWith', (...args: Parameters<RunStore['runIdsStartingWith']>) =>
      store.runIdsStartingWith(...args),
    ),
  };
  const queue: StepQueue = {
    send: through('queue', 'queue.send', async (fault, message: Parameters<StepQueue['send']>[0], delayMs = 0) =>
      around.stepQueue.send(message, delayMs, fault),
    ),
    sendTogether: <Message extends StepMessage>(messages: readonly Message[]) =>
      crossings.cross<Message[]>(by, { kind: 'queue', name: 'queue.sendTogether' }, async (fault) => {
        for (const { tenant, runId } of messages) around.stepQueue.send({ tenant, runId }, 0, fault);
        return [];
      }),
  };
  const outbox: OutboxDispatcher = {
    dispatch: through('outbox', 'outbox.dispatch', async (fault, entry: Parameters<OutboxDispatcher['dispatch']>[0]) =>
      around.outbox.dispatch(entry, fault),
    ),
  };
  const schedules: Pick<ScheduleStore, 'schedule' | 'advance'> = {
    schedule: at('store', 'schedule', (...args: Parameters<ScheduleStore['schedule']>) =>
      store.schedules.schedule(...args),
    ),
    advance: at('store', 'advance', async (...args: Parameters<ScheduleStore['advance']>) => {
      const advanced = await store.schedules.advance(...args);
      if (!advanced) watcher.situations.meet('another sweep has advanced a schedule');
      return advanced;
    }),
  };
  const plans: PlanStore = {
    savePlan: at('store', 'savePlan', (...args: Parameters<PlanStore['savePlan']>) => around.plans.savePlan(...args)),
    savedPlan: at('store', 'savedPlan', (...args: Parameters<PlanStore['savedPlan']>) =>
      around.plans.savedPlan(...args),
    ),
  };
  const reading: Pick<
    Definitions,
    'automations' | 'connection' | 'workflow' | 'workflowVersions' | 'settings' | 'people'
  > = {
    connection: at('reading', 'connection', (...args: Parameters<Definitions['connection']>) =>
      definitions.connection(...args),
    ),
    people: at('reading', 'people', (tenant: string) => definitions.people(tenant)),
    automations: at('reading', 'automations', (tenant: string) => definitions.automations(tenant)),
    workflow: at('reading', 'workflow', (...args: Parameters<Definitions['workflow']>) =>
      definitions.workflow(...args),
    ),
    workflowVersions: at('reading', 'workflowVersions', (...args: Parameters<Definitions['workflowVersions']>) =>
      definitions.workflowVersions(...args),
    ),
    settings: at('reading', 'settings', (tenant: string) => definitions.settings(tenant)),
  };
  const access = new MemoryConnections({ [by.tenant]: around.outside.accessFor(by) });
  const connections: Connections = {
    open: at('reading', 'connections.open', (...args: Parameters<Connections['open']>) => access.open(...args)),
  };
  const policy: Policy = {
    decide: through('policy', 'policy.decide', (fault, ...asked: Parameters<Policy['decide']>) =>
      around.policy.decide(by.machine, fault, ...asked),
    ),
  };
  const cards: Cards = {
    post: at('people', 'cards.post', async ({ channel, approvalId }: Approval) => ({ channel, ts: approvalId })),
    update: at('people', 'cards.update', async () => {}),
    remind: at('people', 'cards.remind', async () => {}),
    escalate: at('people', 'cards.escalate', async () => {}),
    alert: at('people', 'cards.alert', async () => {}),
  };
  const tokens: TaskTokens = {
    answer: at('people', 'tokens.answer', async (...[taskToken, decision]: Parameters<TaskTokens['answer']>) =>
      watcher.tokenAnswered(decision, around.wake(taskToken)),
    ),
  };
  const store_: EvidenceStore = {
    putOnce: at('evidence', 'evidence.putOnce', (key: string, content: Buffer, contentType: string) => {
      watcher.sealing(key, content);
      return around.evidence.putOnce(key, content, contentType);
    }),
    get: at('evidence', 'evidence.get', (key: string) => around.evidence.get(key)),
  };
  const signer: Signer = {
    keyId: around.signer.keyId,
    sign: at('reading', 'sign', (message: Buffer) => around.signer.sign(message)),
    trusted: at('reading', 'trusted', () => around.signer.trusted()),
  };
  const log: Log = {
    info: () => {},
    warn: (message, details) => watcher.complained(by, message, details?.error),
    error: (message, details) => watcher.complained(by, message, details?.error),
  };
  const every = (ms: number, run: () => void) => {
    let stopped = false;
    const again = () =>
      around.time.after(ms / around.renewsTimesAsOften, () =>
        by.goOn(() => {
          if (stopped || by.isOver) return;
          run();
          again();
        }),
      );
    again();
    return () => {
      stopped = true;
    };
  };
  const { ids, random } = around;
  const { clock } = by;
  return {
    runs,
    queue,
    outbox,
    definitions: reading,
    schedules,
    plans,
    policy,
    cards,
    tokens,
    environment: 'dev' as const,
    connections,
    expressions: new OwnThreadExpressions(clock.now),
    store: store_,
    exports: { store: store_, wanted: [] },
    signer,
    log,
    every,
    ids,
    random,
    clock,
  };
}
