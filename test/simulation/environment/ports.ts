import { type AgentRegistry, noHints } from '../../../lambdas/agents/agent-registry.ts';
import type { BulkJobs } from '../../../lambdas/api/bulk/bulk-job.ts';
import type { DigestStore } from '../../../lambdas/approval/digest/digest-store.ts';
import type { TaskTokens } from '../../../lambdas/approval/publish-decision.ts';
import type { Cards } from '../../../lambdas/approval/wait-for-decision.ts';
import { allowedMs } from '../../../lambdas/connectors/attempt-deadline.ts';
import type { Connections } from '../../../lambdas/connectors/connections.ts';
import { EXCHANGE_TIMEOUT_MS } from '../../../lambdas/connectors/exchange.ts';
import type { Ids, Log } from '../../../lambdas/entry/ports.ts';
import type { EvidenceStore, Signer } from '../../../lambdas/evidence/evidence-store.ts';
import type { NoticeStore } from '../../../lambdas/notify/notice-store.ts';
import type { OutboxDispatcher } from '../../../lambdas/outbox/outbox.ts';
import type { Definitions } from '../../../lambdas/pipeline/definitions.ts';
import type { PlanStore } from '../../../lambdas/plan/plan-store.ts';
import type { Policy } from '../../../lambdas/policy/policy.ts';
import type { Approval } from '../../../lambdas/run/approval.ts';
import type { RunChange } from '../../../lambdas/run/commit.ts';
import type { CommitResult, Ingest, IngestResult, RunStore } from '../../../lambdas/run/run-store.ts';
import type { StepMessage, StepQueue } from '../../../lambdas/run-changes/step-queue.ts';
import type { ScheduleStore } from '../../../lambdas/schedules/schedule-store.ts';
import { SlackDigests } from '../../../lambdas/slack/digest/slack-digests.ts';
import { SlackNotices } from '../../../lambdas/slack/notice/slack-notices.ts';
import { allOf } from '../../fakes/all-of.ts';
import { MemoryConnections } from '../../fakes/memory/memory-connections.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import { OwnThreadExpressions } from '../../fakes/own-thread-expressions.ts';
import type { CallKind, Fault } from '../faults.ts';
import type { ApprovalInvariants } from '../invariants/approvals.ts';
import type { BulkJobInvariants } from '../invariants/bulk-jobs.ts';
import type { CardInvariants } from '../invariants/cards.ts';
import type { DigestInvariants } from '../invariants/digests.ts';
import type { KillSwitchInvariants } from '../invariants/kill-switch.ts';
import type { NoticeInvariants } from '../invariants/notices.ts';
import type { Situations } from '../situations.ts';
import type { FaultyCalls } from './faulty-calls.ts';
import { isAnnouncer } from './functions.ts';
import type { Invocation } from './invocation.ts';
import type { SimulatedPolicy } from './simulated-policy.ts';
import type { SimulatedTargets } from './simulated-targets.ts';
import type { StaleIndexReads } from './stale-index-reads.ts';
import type { VirtualTime } from './virtual-time.ts';

/** What all invocations of a simulation share. */
export interface SharedServices {
  time: VirtualTime;
  faultyCalls: FaultyCalls;
  store: MemoryRunStore;
  definitions: Definitions;
  plans: PlanStore;
  bulkJobs: BulkJobs;
  evidence: EvidenceStore;
  signer: Signer;
  targets: SimulatedTargets;
  policy: SimulatedPolicy;
  /** Ends the wait of the execution that waits for this token; false if none does. */
  useTaskToken(taskToken: string): boolean;
  ids: Ids;
  random: () => number;
  views: StaleIndexReads;
  /** Attempts usually end before a renewal is due. A larger number makes renewals that many times as frequent. */
  renewsTimesAsOften: number;
  agents?: { keepAlive(tenant: string): void; offered(envelope: unknown): void };
  /** The queue of step messages, which simulates the faults of messages. */
  stepQueue: { send(message: { tenant: string; runId: string }, delayMs: number, fault: Fault | undefined): void };
  outbox: { dispatch(entry: Parameters<OutboxDispatcher['dispatch']>[0], fault: Fault | undefined): void };
  observer: {
    committing(by: Invocation, change: RunChange, commit: () => Promise<CommitResult>): Promise<CommitResult>;
    ingesting(ingest: Ingest, write: () => Promise<IngestResult>): Promise<IngestResult>;
    sealing(key: string, document: Buffer): void;
    changedWithoutCommit(before: Approval, changes: Partial<Approval>): void;
    approvals: ApprovalInvariants;
    cards: CardInvariants;
    taskTokenUsed(decision: Parameters<TaskTokens['complete']>[1], executionWaited: boolean): void;
    bulk: BulkJobInvariants;
    killSwitch: KillSwitchInvariants;
    situations: Situations;
    digests: DigestInvariants;
    notices: NoticeInvariants;
    logged(by: Invocation, message: string, error: unknown): void;
  };
}

/** Signs the tokens of sessions. */
export const SESSION_SECRET = 'secret of sessions';

/** The ports of one invocation. The real use cases have no other access to the simulation. */
export function portsFor(shared: SharedServices, by: Invocation) {
  const { faultyCalls, store, definitions, views, observer } = shared;
  const withFault =
    <Arguments extends unknown[], Result>(
      kind: CallKind,
      name: string,
      effect: (fault: Fault | undefined, ...args: Arguments) => Promise<Result>,
    ) =>
    (...args: Arguments) =>
      faultyCalls.call(by, { kind, name }, (fault) => effect(fault, ...args));
  const call = <Arguments extends unknown[], Result>(
    kind: CallKind,
    name: string,
    effect: (...args: Arguments) => Promise<Result>,
  ) => withFault<Arguments, Result>(kind, name, (_fault, ...args) => effect(...args));
  const indexRead = <Arguments extends unknown[], Result>(
    name: string,
    read: (...args: Arguments) => Promise<Result>,
  ) =>
    withFault<Arguments, Result>('index', name, (fault, ...args) => {
      if (fault === 'stale') observer.situations.record('an index read is stale');
      return views.read(name, args, fault, () => read(...args));
    });

  const runs: RunStore = {
    ingest: call('store', 'ingest', (ingest: Ingest) => observer.ingesting(ingest, () => store.ingest(ingest))),
    commit: call('store', 'commit', (change: RunChange) => observer.committing(by, change, () => store.commit(change))),
    renewLease: call('store', 'renewLease', async (...args: Parameters<RunStore['renewLease']>) => {
      const renewed = await store.renewLease(...args);
      observer.situations.record(renewed ? 'a lease is renewed' : 'a renewal of a lost lease is refused');
      return renewed;
    }),
    load: call('store', 'load', (...args: Parameters<RunStore['load']>) => store.load(...args)),
    runAndStep: call('store', 'runAndStep', (...args: Parameters<RunStore['runAndStep']>) => store.runAndStep(...args)),
    async *everyRow(...args) {
      yield* await call('store', 'everyRow', () => allOf(store.everyRow(...args)))();
    },
    listCommits: call('store', 'listCommits', (...args: Parameters<RunStore['listCommits']>) =>
      store.listCommits(...args),
    ),
    receipts: call('store', 'receipts', (...args: Parameters<RunStore['receipts']>) => store.receipts(...args)),
    approval: call('store', 'approval', (...args: Parameters<RunStore['approval']>) => store.approval(...args)),
    approvals: call('store', 'approvals', (...args: Parameters<RunStore['approvals']>) => store.approvals(...args)),
    evidence: call('store', 'evidence', (...args: Parameters<RunStore['evidence']>) => store.evidence(...args)),
    reruns: call('store', 'reruns', (...args: Parameters<RunStore['reruns']>) => store.reruns(...args)),
    idempotencyRecord: call('store', 'idempotencyRecord', (...args: Parameters<RunStore['idempotencyRecord']>) =>
      store.idempotencyRecord(...args),
    ),
    postponeRun: call('store', 'postponeRun', (...args: Parameters<RunStore['postponeRun']>) => {
      if (args[0].sweeps > 1) observer.situations.record('the sweeper sends a run again');
      return store.postponeRun(...args);
    }),
    outboxEntries: call('store', 'outboxEntries', (...args: Parameters<RunStore['outboxEntries']>) =>
      store.outboxEntries(...args),
    ),
    bumpOutbox: call('store', 'bumpOutbox', async (...args: Parameters<RunStore['bumpOutbox']>) => {
      if (!isAnnouncer(by)) observer.situations.record('the sweeper sends an outbox entry again');
      const bumped = await store.bumpOutbox(...args);
      observer.cards.announced(by, args[0].id, bumped);
      return bumped;
    }),
    stuckOutbox: call('store', 'stuckOutbox', (...args: Parameters<RunStore['stuckOutbox']>) =>
      store.stuckOutbox(...args),
    ),
    redriveOutbox: call('store', 'redriveOutbox', (...args: Parameters<RunStore['redriveOutbox']>) =>
      store.redriveOutbox(...args),
    ),
    failOutbox: call('store', 'failOutbox', (...args: Parameters<RunStore['failOutbox']>) => store.failOutbox(...args)),
    completeSeal: call('store', 'completeSeal', (...args: Parameters<RunStore['completeSeal']>) => {
      const [, tenant, runId] = args;
      if (store.inside.evidence(tenant, runId)) observer.situations.record('evidence is sealed a second time');
      return store.completeSeal(...args);
    }),
    clearSealDue: call('store', 'clearSealDue', (...args: Parameters<RunStore['clearSealDue']>) =>
      store.clearSealDue(...args),
    ),
    completeExport: call('store', 'completeExport', (...args: Parameters<RunStore['completeExport']>) =>
      store.completeExport(...args),
    ),
    expireRun: call('store', 'expireRun', () => store.expireRun()),
    completeOutboxEntry: call('store', 'completeOutboxEntry', async (entryId: string) => {
      await store.completeOutboxEntry(entryId);
      observer.digests.completed(entryId);
      observer.cards.checkHeld(entryId);
    }),
    storeCard: call('store', 'storeCard', async (...args: Parameters<RunStore['storeCard']>) => {
      const [{ id }, read, changes] = args;
      const result = await store.storeCard(...args);
      if (result === 'stored') {
        observer.changedWithoutCommit(read, changes);
        observer.cards.stored();
      }
      observer.cards.checkHeld(id);
      return result;
    }),
    cancelStart: call('store', 'cancelStart', async (entryId: string) => {
      await store.cancelStart(entryId);
      observer.cards.checkHeld(entryId);
    }),
    storeTaskToken: call('store', 'storeTaskToken', async (...args: Parameters<RunStore['storeTaskToken']>) => {
      const [id, read, changes, token] = args;
      const result = await store.storeTaskToken(...args);
      if (result === 'stored') observer.changedWithoutCommit(read, changes);
      if (result === 'stored' && token) observer.approvals.tokenStored(read.approvalId, token.waitNumber);
      observer.cards.checkHeld(id);
      return result;
    }),
    countPendingApprovals: call('store', 'countPendingApprovals', (tenant: string) =>
      store.countPendingApprovals(tenant),
    ),
    taskToken: call('store', 'taskToken', (...args: Parameters<RunStore['taskToken']>) => store.taskToken(...args)),
    addenda: indexRead('addenda', (...args: Parameters<RunStore['addenda']>) => store.addenda(...args)),
    closedApprovals: indexRead('closedApprovals', (...args: Parameters<RunStore['closedApprovals']>) =>
      store.closedApprovals(...args),
    ),
    pendingApprovals: indexRead('pendingApprovals', (...args: Parameters<RunStore['pendingApprovals']>) =>
      store.pendingApprovals(...args),
    ),
    due: indexRead('due', (...args: Parameters<RunStore['due']>) => store.due(...args)),
    waitingLine: indexRead('waitingLine', (...args: Parameters<RunStore['waitingLine']>) => store.waitingLine(...args)),
    listRuns: indexRead('listRuns', (...args: Parameters<RunStore['listRuns']>) => store.listRuns(...args)),
    someRuns: indexRead('someRuns', (...args: Parameters<RunStore['someRuns']>) => store.someRuns(...args)),
    openOutbox: indexRead('openOutbox', (...args: Parameters<RunStore['openOutbox']>) => store.openOutbox(...args)),
    lastSweep: indexRead('lastSweep', (tenant: string) => store.lastSweep(tenant)),
    recordSweep: call('store', 'recordSweep', (...args: Parameters<RunStore['recordSweep']>) =>
      store.recordSweep(...args),
    ),
    countRuns: indexRead('countRuns', (...args: Parameters<RunStore['countRuns']>) => store.countRuns(...args)),
    runIdsStartingWith: indexRead('runIdsStartingWith', (...args: Parameters<RunStore['runIdsStartingWith']>) =>
      store.runIdsStartingWith(...args),
    ),
  };
  const queue: StepQueue = {
    send: withFault('queue', 'queue.send', async (fault, message: Parameters<StepQueue['send']>[0], delayMs = 0) =>
      shared.stepQueue.send(message, delayMs, fault),
    ),
    sendTogether: <Message extends StepMessage>(messages: readonly Message[]) =>
      faultyCalls.call<Message[]>(by, { kind: 'queue', name: 'queue.sendTogether' }, async (fault) => {
        for (const { tenant, runId } of messages) shared.stepQueue.send({ tenant, runId }, 0, fault);
        return [];
      }),
  };
  const outbox: OutboxDispatcher = {
    dispatch: withFault(
      'outbox',
      'outbox.dispatch',
      async (fault, entry: Parameters<OutboxDispatcher['dispatch']>[0]) => shared.outbox.dispatch(entry, fault),
    ),
  };
  const schedules: Pick<ScheduleStore, 'schedule' | 'advance'> = {
    schedule: call('store', 'schedule', (...args: Parameters<ScheduleStore['schedule']>) =>
      store.schedules.schedule(...args),
    ),
    advance: call('store', 'advance', async (...args: Parameters<ScheduleStore['advance']>) => {
      const advanced = await store.schedules.advance(...args);
      if (!advanced) observer.situations.record('another sweep has advanced a schedule');
      return advanced;
    }),
  };
  const agents: AgentRegistry = {
    agents: call('store', 'agents', (...args: Parameters<AgentRegistry['agents']>) => {
      shared.agents?.keepAlive(args[0]);
      return store.agents.agents(...args);
    }),
    agent: call('store', 'agent', (...args: Parameters<AgentRegistry['agent']>) => store.agents.agent(...args)),
    create: call('store', 'createAgent', (...args: Parameters<AgentRegistry['create']>) =>
      store.agents.create(...args),
    ),
    update: call('store', 'updateAgent', (...args: Parameters<AgentRegistry['update']>) =>
      store.agents.update(...args),
    ),
    delete: call('store', 'deleteAgent', (...args: Parameters<AgentRegistry['delete']>) =>
      store.agents.delete(...args),
    ),
    offer: call('store', 'offer', async (...args: Parameters<AgentRegistry['offer']>) => {
      const isOffered = await store.agents.offer(...args);
      if (isOffered) shared.agents?.offered(args[0].envelope);
      return isOffered;
    }),
    assignment: call('store', 'assignment', (...args: Parameters<AgentRegistry['assignment']>) =>
      store.agents.assignment(...args),
    ),
  };
  const plans: PlanStore = {
    savePlan: call('store', 'savePlan', (...args: Parameters<PlanStore['savePlan']>) => shared.plans.savePlan(...args)),
    savedPlan: call('store', 'savedPlan', (...args: Parameters<PlanStore['savedPlan']>) =>
      shared.plans.savedPlan(...args),
    ),
  };
  const jobs: BulkJobs = {
    get: call('store', 'bulkJob', (...args: Parameters<BulkJobs['get']>) => shared.bulkJobs.get(...args)),
    create: call('store', 'createBulkJob', async (job: Parameters<BulkJobs['create']>[0]) => {
      await shared.bulkJobs.create(job);
      observer.bulk.previewed(job);
    }),
    update: call('store', 'updateBulkJob', async (...args: Parameters<BulkJobs['update']>) => {
      const isStored = await shared.bulkJobs.update(...args);
      observer.bulk.updated(...args, isStored);
      return isStored;
    }),
  };
  const definitionReads: Pick<
    Definitions,
    | 'automations'
    | 'connection'
    | 'workflow'
    | 'workflowVersions'
    | 'settings'
    | 'people'
    | 'profiles'
    | 'configuration'
  > = {
    connection: call('read', 'connection', (...args: Parameters<Definitions['connection']>) =>
      definitions.connection(...args),
    ),
    people: call('read', 'people', (tenant: string) => definitions.people(tenant)),
    automations: call('read', 'automations', (tenant: string) => definitions.automations(tenant)),
    workflow: call('read', 'workflow', (...args: Parameters<Definitions['workflow']>) => definitions.workflow(...args)),
    workflowVersions: call('read', 'workflowVersions', (...args: Parameters<Definitions['workflowVersions']>) =>
      definitions.workflowVersions(...args),
    ),
    settings: call('read', 'settings', async (tenant: string) => {
      const settings = await definitions.settings(tenant);
      observer.killSwitch.read(by, settings);
      return settings;
    }),
    profiles: call('read', 'profiles', (tenant: string) => definitions.profiles(tenant)),
    configuration: call('read', 'configuration', (...args: Parameters<Definitions['configuration']>) =>
      definitions.configuration(...args),
    ),
  };
  const access = new MemoryConnections({ [by.tenant]: shared.targets.accessFor(by) });
  const connections: Connections = {
    open: call('read', 'connections.open', (...args: Parameters<Connections['open']>) => access.open(...args)),
  };
  const policy: Policy = {
    decide: withFault('policy', 'policy.decide', (fault, ...asked: Parameters<Policy['decide']>) =>
      shared.policy.decide(by.machine, fault, ...asked),
    ),
  };
  const post = call('notification', 'cards.post', async (approval: Approval) => observer.cards.post(by, approval));
  const find = call('notification', 'cards.find', async (approval: Approval) => observer.cards.find(approval));
  const cards: Cards = {
    post: async (approval, mayBePosted) => {
      const found = mayBePosted ? await find(approval) : undefined;
      if (found) return found;
      allowedMs({ system: 'Slack', writes: true, timeoutMs: EXCHANGE_TIMEOUT_MS });
      return post(approval);
    },
    find,
    update: call('notification', 'cards.update', async (approval: Approval) => observer.cards.update(approval)),
    remind: call('notification', 'cards.remind', async () => {}),
    alert: call('notification', 'cards.alert', async () => {}),
  };
  const digests: DigestStore = {
    digests: call('store', 'digests', (...args: Parameters<DigestStore['digests']>) => store.digests.digests(...args)),
    save: call('store', 'saveDigests', async (...args: Parameters<DigestStore['save']>) => {
      const saved = await store.digests.save(...args);
      observer.digests.saved(args[1], saved);
      return saved;
    }),
  };
  const notices: NoticeStore = {
    notice: call('store', 'notice', (...args: Parameters<NoticeStore['notice']>) => store.notices.notice(...args)),
    notices: call('store', 'notices', (...args: Parameters<NoticeStore['notices']>) => store.notices.notices(...args)),
    save: call('store', 'saveNotice', async (...args: Parameters<NoticeStore['save']>) => {
      const saved = await store.notices.save(...args);
      observer.notices.saved(args[0], saved);
      return saved;
    }),
  };
  const tokens: TaskTokens = {
    complete: call(
      'notification',
      'tokens.complete',
      async (...[taskToken, decision]: Parameters<TaskTokens['complete']>) =>
        observer.taskTokenUsed(decision, shared.useTaskToken(taskToken)),
    ),
  };
  const evidence: EvidenceStore = {
    putOnce: call('evidence', 'evidence.putOnce', (key: string, content: Buffer, contentType: string) => {
      observer.sealing(key, content);
      return shared.evidence.putOnce(key, content, contentType);
    }),
    get: call('evidence', 'evidence.get', (...args: Parameters<EvidenceStore['get']>) => shared.evidence.get(...args)),
  };
  const signer: Signer = {
    keyId: shared.signer.keyId,
    sign: call('read', 'sign', (message: Buffer) => shared.signer.sign(message)),
    trusted: call('read', 'trusted', () => shared.signer.trusted()),
  };
  const log: Log = {
    info: () => {},
    warn: (message, details) => observer.logged(by, message, details?.error),
    error: (message, details) => observer.logged(by, message, details?.error),
  };
  const every = (ms: number, run: () => void) => {
    let stopped = false;
    const again = () =>
      shared.time.after(ms / shared.renewsTimesAsOften, () =>
        by.resume(() => {
          if (stopped || by.hasReturned) return;
          run();
          again();
        }),
      );
    again();
    return () => {
      stopped = true;
    };
  };
  const { ids, random } = shared;
  const { clock } = by;
  return {
    runs,
    queue,
    outbox,
    definitions: definitionReads,
    agents,
    hints: noHints,
    assignmentSigner: signer,
    schedules,
    plans,
    jobs,
    policy,
    cards,
    digests,
    notices,
    messages: new SlackDigests({ connections, people: definitionReads, clock, log }),
    noticeMessages: new SlackNotices({ connections, definitions: definitionReads, log, consoleUrl: undefined }),
    tokens,
    environment: 'dev' as const,
    sessionSecret: async () => SESSION_SECRET,
    ownUrl: 'https://api.example.com',
    connections,
    expressions: new OwnThreadExpressions(clock.now),
    store: evidence,
    exports: { store: evidence, artifacts: evidence, wanted: [] },
    signer,
    log,
    every,
    ids,
    random,
    clock,
  };
}
