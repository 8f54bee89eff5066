import { at, canonical, type Fields, isSorted, type Json, listAt } from './second-verifier.ts';

/** "What the commits prove", as questions about the list of all events. */
export interface History {
  runId: string;
  events: Event[];
}
export type Event = Fields & { type: string; saidAt: string; commit: number; place: number };

const FIRST_UNDO = 5000;

export function historyOf(document: Json): History {
  const events = listAt(document, 'commits').flatMap((commit) =>
    listAt(commit, 'events').map((event) => ({
      ...(event as Fields & { type: string }),
      saidAt: String(at(commit, 'at')),
      commit: Number(at(commit, 'seq')),
    })),
  );
  return {
    runId: String(at(at(document, 'run'), 'runId')),
    events: events.map((event, place) => ({ ...event, place })) as Event[],
  };
}

export function matchesCommits(document: Json): boolean {
  const history = historyOf(document);
  return (
    namesAgree(history) &&
    shows(at(document, 'run'), expectedRun(history)) &&
    shows(at(document, 'trigger'), expectedTrigger(history)) &&
    areSteps(listAt(document, 'steps'), history) &&
    areReceipts(listAt(document, 'receipts'), history) &&
    areApprovals(listAt(document, 'approvals'), history) &&
    gathers(document, history)
  );
}

/** "A step has one id", and "no event names an approval before it was requested". */
function namesAgree({ events }: History): boolean {
  return events.every(({ type, step, index, approvalId, place }) => {
    const earlier = events.slice(0, place);
    const named = earlier.find((event) => event.index === index && event.step !== undefined)?.step;
    const isNamed = step === undefined || index === undefined || named === undefined || named === step;
    const isAsked = earlier.some((event) => event.type === 'approval.requested' && event.approvalId === approvalId);
    return isNamed && (approvalId === undefined || type === 'approval.requested' || isAsked);
  });
}

type Expected = { [name: string]: Json | Expected | Expected[] | undefined };

/** Whether the entry has exactly these values; undefined: the field is absent. */
function shows(shown: Json, expected: Expected): boolean {
  return Object.entries(expected).every(([name, value]) => isAs((shown as Fields)[name], value));
}

function isAs(shown: Json | undefined, value: Expected[string]): boolean {
  if (shown === undefined || value === undefined) return shown === value;
  if (Array.isArray(value)) {
    const list = Array.isArray(shown) ? shown : [];
    return list.length === value.length && value.every((each, index) => isAs(list[index], each as Json));
  }
  if (value !== null && typeof value === 'object' && shown !== null && typeof shown === 'object') {
    return shows(shown, value as Expected);
  }
  return canonical(shown) === canonical(value as Json);
}

const digest = (sha256: Json | undefined): Expected | undefined => (sha256 === undefined ? undefined : { sha256 });
const lastOf = (events: Event[], ...types: string[]) => events.findLast(({ type }) => types.includes(type));
const after = (events: Event[], place: number) => events.filter((event) => event.place > place);
const until = (events: Event[], place: number) => events.filter((event) => event.place <= place);

function expectedRun({ events }: History): Expected {
  const accepted = events.find(({ type, commit }) => type === 'run.accepted' && commit === 1);
  const {
    type: _type,
    place: _place,
    commit: _commit,
    saidAt: _saidAt,
    ...request
  } = events.find(({ type, commit }) => type === 'run.requested' && commit === 1) ?? ({} as Event);
  const moved = lastOf(events, 'run.status_changed');
  const back = events.findLast(({ type, to }) => type === 'run.status_changed' && to === 'rolling_back');
  const extended = lastOf(events, 'run.deadline_extended');
  const rolls = events.find(({ type, commit }) => type === 'run.rolls_back' && commit === 1);
  const compensation = events.filter(({ type }) => type === 'write.compensated');
  const { automation, workflow, source, event, key } = accepted ?? ({} as Fields);
  return {
    ...{ automation, workflow, trigger: { source, event, key }, createdAt: accepted?.saidAt },
    request: Object.keys(request).length === 0 ? undefined : (request as Expected),
    startedAt: lastOf(events, 'run.enriched')?.saidAt,
    requester: lastOf(events, 'run.enriched')?.requester,
    flags: lastOf(events, 'run.enriched')?.flags,
    ...{ status: moved?.to, error: moved?.error, completedAt: moved?.saidAt },
    durationMs: Math.max(0, Date.parse(moved?.saidAt ?? '') - Date.parse(accepted?.saidAt ?? '')),
    ...(extended && { deadlineAt: extended.deadlineAt }),
    resumeCount: events.filter(({ type }) => type === 'run.resumed').length || undefined,
    rollback: back && {
      ...{ actor: back.actor, error: back.error, at: back.saidAt },
      endsAs: back.error === undefined ? (rolls ? 'succeeded' : 'canceled') : 'failed_terminal',
    },
    rollbackOf: rolls && { runId: rolls.runId, bundleHash: rolls.bundleHash, steps: rolls.steps },
    compensation:
      compensation.length === 0
        ? undefined
        : compensation.map(({ step, receiptKey, outcome, reason }) => ({ step, receiptKey, outcome, reason })),
  };
}

function expectedTrigger({ events }: History): Expected {
  const { source, event, triggerHash, saidAt } = events.find(({ type }) => type === 'run.accepted') as Event;
  return { source, event, receivedAt: saidAt, payload: digest(triggerHash) };
}

/** The events of a step: those with its index, and the events of writes next to its claims and successes. */
function storyOf({ events }: History, index: Json): Event[] {
  const own = events.filter((event) => event.index === index && event.step !== undefined);
  const claims = own.filter(({ type }) => type === 'step.claimed').map(({ place }) => events[place + 1]);
  const endings = own.filter(({ type }) => type === 'step.succeeded' || type === 'step.failed');
  const reuses = endings.map(({ place, step }) => {
    const before = events[place - 1];
    return before?.type === 'write.reused' && before.step === step ? before : undefined;
  });
  const beside = [...claims, ...reuses].filter((event): event is Event => event !== undefined);
  return [...own, ...beside].sort((a, b) => a.place - b.place);
}

/** The last claim of a step in these events. */
function claimIn(story: Event[]): Event | undefined {
  const claim = lastOf(story, 'step.claimed');
  const ENDED_BY = ['policy.decided', 'step.retry_scheduled', 'step.retry_requested', 'write.reused'];
  return claim && lastOf(after(story, claim.place), ...ENDED_BY) ? undefined : claim;
}

const keyOf = ({ events }: History, claim: Event | undefined) => claim && events[claim.place + 1]?.receiptKey;

/** The approval of a step at some position. */
export function approvalAt(history: History, index: Json, place: number): Json | undefined {
  const before = until(history.events, place);
  const asked = before.findLast(
    ({ type, approvalId, asks, index: which }) =>
      (type === 'approval.requested' && asks !== 'step' && indexIn(approvalId) === index) ||
      (type === 'approval.covered' && which === index),
  );
  const gone = after(before, asked?.place ?? 0).some(
    ({ type, approvalId, index: which = indexIn(approvalId) }) =>
      which === index && ((type === 'approval.stale' && approvalId === asked?.approvalId) || type === 'step.failed'),
  );
  return asked && !gone ? asked.approvalId : undefined;
}

export const indexIn = (approvalId: Json | undefined) => Number(/-(\d+)$/.exec(String(approvalId))?.[1]);

function areSteps(steps: Json[], history: History): boolean {
  const indexes = steps.map((step) => Number(at(step, 'index')));
  const named = new Set(
    history.events.flatMap(({ step, index }) => (step !== undefined && index !== undefined ? [index] : [])),
  );
  const isInOrder = indexes.every((index, place) => place === 0 || (indexes[place - 1] ?? index) < index);
  return isInOrder && named.size === steps.length && steps.every((step) => isStep(step, history));
}

const STATUS: Record<string, string> = {
  'step.succeeded': 'succeeded',
  'step.failed': 'failed_terminal',
  'step.canceled': 'canceled',
};

function isStep(step: Json, history: History): boolean {
  const index = at(step, 'index');
  const story = storyOf(history, index);
  const ending = lastOf(story, ...Object.keys(STATUS));
  if (!ending) return false;
  const past = until(story, ending.place);
  const claim = claimIn(past);
  const decided = lastOf(past, 'policy.decided');
  const reused = past.findLast(({ type, place }) => type === 'write.reused' && place === ending.place - 1);
  const succeeded = ending.type === 'step.succeeded';
  const receiptKey = keyOf(history, claim) ?? reused?.receiptKey;
  const reversed = after(history.events, ending.place).find(
    (event) => event.type === 'write.reversed' && event.step === ending.step && event.receiptKey === receiptKey,
  );
  const back = succeeded && receiptKey !== undefined ? reversed : undefined;
  const tool = lastOf(story, 'policy.decided', 'step.claimed')?.tool;
  const input = at(step, 'input');
  return (
    shows(step, {
      id: story.find((event) => event.index === index)?.step,
      status: back ? 'rolled_back' : STATUS[ending.type],
      skipped: succeeded ? ending.skipped : undefined,
      output: succeeded ? digest(ending.outputHash) : undefined,
      error: ending.type === 'step.failed' ? ending.error : undefined,
      completedAt: ending.saidAt,
      updatedAt: (back ?? ending).saidAt,
      undoes: Number(index) >= FIRST_UNDO ? Number(index) - FIRST_UNDO : undefined,
      ...(tool !== undefined && { tool }),
      ...((succeeded || claim) && { receiptKey }),
      ...(ending.type !== 'step.failed' && { input: undefined }),
      ...(decided && at(step, 'action') !== null && { action: actionOf(lastOf(story, 'policy.decided') ?? decided) }),
      ...(claim && {
        ...{ attempt: claim.attempt, leaseVersion: claim.leaseVersion },
        action: decided && actionOf(decided),
        approvalId: approvalAt(history, index, ending.place - 1),
        assigned: assignedIn(after(past, claim.place)),
      }),
    }) &&
    (!claim || input === null || at(input, 'sha256') === claim.inputHash)
  );
}

/** The agent that acknowledged the assignment of a claim. */
function assignedIn(story: Event[]): Expected | undefined {
  const assigned = lastOf(story, 'step.assigned');
  if (!assigned) return undefined;
  const { agent, assignment, profile, statementHash } = assigned;
  return { agent, assignment, profile, statementHash };
}

/** What an agent reported about the command of a write. */
function commandIn(about: Event[]): Expected | undefined {
  const ended = lastOf(about, 'step.command_ended');
  if (!ended) return undefined;
  const { agent: agentId, assignment: assignmentId, status, exitCode, durationMs, violations } = ended;
  const output = { sha256: ended.outputSha256, bytes: ended.outputBytes } as Json;
  const credentialsUsed = listAt(ended, 'credentials').map((id) => ({ id }));
  return { ...{ agentId, assignmentId, status, exitCode, durationMs, violations }, output, credentialsUsed };
}

const actionOf = ({ tool, target, derived }: Event) => ({ tool, target, derived });

function areReceipts(receipts: Json[], history: History): boolean {
  const keys = receipts.map((receipt) => String(at(receipt, 'key')));
  const places = receipts.map((receipt) => `${String(at(receipt, 'index')).padStart(9, '0')} ${at(receipt, 'key')}`);
  const own = receipts.filter((receipt) => at(receipt, 'runId') === history.runId).map((receipt) => at(receipt, 'key'));
  const due = history.events.flatMap(({ type, receiptKey }) => (type === 'write.intended' ? [receiptKey ?? null] : []));
  const passedOn = (key: Json) => ['failed', 'reversed'].includes(String(outcomeOf(history, key)));
  return (
    isSorted(places) &&
    new Set(keys).size === keys.length &&
    due.every((key) => own.includes(key) || passedOn(key)) &&
    receipts.every((receipt) => isReceipt(receipt, history))
  );
}

function outcomeOf({ events }: History, key: Json): Json | undefined {
  const last = lastOf(
    events.filter(({ receiptKey }) => receiptKey === key),
    ...['write.intended', 'write.settled', 'write.reversed'],
  );
  if (last?.type === 'write.settled') return last.outcome;
  return last?.type === 'write.reversed' ? 'reversed' : 'intent';
}

function isReceipt(receipt: Json, history: History): boolean {
  const key = at(receipt, 'key');
  const about = history.events.filter(({ receiptKey }) => receiptKey === key);
  if (at(receipt, 'runId') !== history.runId) {
    const from = lastOf(about, 'write.reused')?.firstRunId;
    return at(receipt, 'outcome') === 'succeeded' && from === at(receipt, 'runId');
  }
  const intents = about.filter(({ type }) => type === 'write.intended');
  const intended = intents.at(-1);
  const claim = intended && history.events[intended.place - 1];
  if (!intended || claim?.type !== 'step.claimed') return false;
  const since = after(about, intended.place);
  const [settled, reversed] = [lastOf(since, 'write.settled'), lastOf(since, 'write.reversed')];
  const story = storyOf(history, claim.index ?? null);
  const decided = lastOf(until(story, intended.place), 'policy.decided');
  const { step, tool, target, requestHash } = intended;
  return (
    intents.some(({ saidAt }) => saidAt === at(receipt, 'openSince')) &&
    shows(receipt, {
      ...{ step, tool, target, requestHash, intentAt: intended.saidAt, outcome: outcomeOf(history, key) },
      ...{ index: claim.index, attempt: claim.attempt, leaseVersion: claim.leaseVersion },
      grounds: decided && {
        ...{ policyHash: decided.policyHash, policies: decided.policies },
        approvalId: approvalAt(history, claim.index ?? null, intended.place),
      },
      ...{ settledAt: settled?.saidAt, recovered: settled?.recovered },
      ...{ reversedAt: reversed?.saidAt, reversedBy: reversed?.reversedBy },
      command: commandIn(since),
      ...expectedOutput(story, claim, settled),
    })
  );
}

function expectedOutput(story: Event[], claim: Event, settled: Event | undefined): Expected {
  if (settled?.outcome !== 'succeeded') return { output: undefined };
  // The output of a session is not that of its start.
  if (lastOf(after(story, claim.place), 'session.started')) return {};
  const gave = after(story, claim.place).find(
    ({ type, place }) => type === 'step.succeeded' && claimIn(until(story, place)) === claim,
  );
  return gave ? { output: digest(gave.outputHash) } : {};
}

function areApprovals(approvals: Json[], history: History): boolean {
  const asked = history.events.filter(({ type }) => type === 'approval.requested');
  const places = approvals.map((approval) => `${at(approval, 'requestedAt')} ${at(approval, 'approvalId')}`);
  return (
    isSorted(places) &&
    asked.length === approvals.length &&
    approvals.every((approval) => isApproval(approval, history))
  );
}

const CLOSED: Record<string, string> = { 'approval.expired': 'expired', 'approval.canceled': 'canceled' };

function isApproval(approval: Json, history: History): boolean {
  const id = at(approval, 'approvalId');
  const about = history.events.filter(({ approvalId }) => approvalId === id);
  const asked = lastOf(about, 'approval.requested');
  if (!asked) return false;
  const index = indexIn(id);
  const edits = about.filter(({ type }) => type === 'approval.edited');
  const latest = edits.at(-1) ?? asked;
  const votes = after(about, latest.place).filter(({ type }) => type === 'approval.voted');
  const closed = lastOf(about, 'approval.decided', ...Object.keys(CLOSED));
  const decided =
    asked.asks === 'step' ? undefined : lastOf(until(storyOf(history, index), latest.place), 'policy.decided');
  const { tier, quorum, groups, operators, makers, actionHash } = latest;
  const { step, asks, slaAt, expiresAt } = asked;
  return shows(approval, {
    ...{ approvalId: `${history.runId}.${asked.commit}-${index}`, step, index, asks, slaAt, expiresAt },
    ...{ actionHash, requirement: { tier, quorum, groups, operators }, makers, requestedAt: asked.saidAt },
    ...(decided && {
      action: { tool: decided.tool, target: decided.target, derived: decided.derived },
      grounds: { policyHash: decided.policyHash, policies: decided.policies, reasons: decided.reasons },
    }),
    phase: expectedPhase(asked.phase, edits.at(-1)),
    edits: edits.map(({ person, via, previousHash, saidAt, fields }) => ({
      ...{ person, via, previousHash, at: saidAt },
      changes: (fields as Json[]).map((field) => ({ field })),
    })),
    votes: votes.map(({ person, via, decision, onBehalfOf, reasonHash, rights, saidAt }) => ({
      ...{ person, via, decision, onBehalfOf, rights, reason: digest(reasonHash), at: saidAt },
    })),
    remindedAt: lastOf(about, 'approval.reminded')?.saidAt,
    escalatedAt: lastOf(about, 'approval.overdue', 'approval.escalated')?.saidAt,
    decidedAt: closed?.saidAt,
    ...(closed && { status: CLOSED[closed.type] ?? closed.status }),
  });
}

/** The other writes of a phase, each by what it calls and where; after an edit, with the hash of the edited write. */
function expectedPhase(phase: unknown, edit: Event | undefined): Expected | undefined {
  if (!phase) return undefined;
  const { writes, ...rest } = phase as { writes: Record<string, Json>[] };
  return {
    ...rest,
    ...(edit && { leadHash: edit.leadHash }),
    writes: writes.map(({ tool, target, derived, ...write }) => ({ ...write, action: { tool, target, derived } })),
  } as Expected;
}

/** The entries that are computed from other entries. */
function gathers(document: Json, { events, runId }: History): boolean {
  const decisions = events
    .filter(({ type }) => type === 'policy.decided')
    .map(({ type: _, saidAt: _at, place: _place, ...decision }) => decision as Json);
  const policies = [...new Set(decisions.map((decision) => String(at(decision, 'policyHash'))))].sort();
  const receipts = listAt(document, 'receipts').filter((receipt) => at(receipt, 'runId') === runId);
  const costs = receipts.map((receipt) => at(receipt, 'cost')).filter((cost) => cost !== null);
  const names = [...new Set(costs.map((cost) => canonical([at(cost, 'provider'), at(cost, 'model')])))];
  const spent = names.map((name) => summed(costs.filter((cost) => nameOf(cost) === name)));
  const bedrock = spent.filter((cost) => at(cost, 'provider') === 'bedrock').map((cost) => Number(at(cost, 'calls')));
  const calls = bedrock.reduce((sum, each) => sum + each, 0);
  const hasExecution = (approval: Json) =>
    at(document, 'format') === 'countersign.evidence/1' ||
    at(approval, 'remindedAt') !== null ||
    at(approval, 'escalatedAt') !== null;
  const executions = listAt(document, 'approvals').filter(hasExecution).length;
  return (
    canonical(decisions) === canonical(at(document, 'decisions')) &&
    canonical(spent) === canonical(at(document, 'cost')) &&
    canonical(at(document, 'awsRequestsAtLeast')) ===
      canonical({
        'dynamodb.TransactWriteItems': listAt(document, 'commits').length,
        ...(executions > 0 && { 'states.StartExecution': executions }),
        ...(calls > 0 && { 'bedrock.Converse': calls }),
      }) &&
    canonical(at(at(document, 'versions'), 'policies')) === canonical(policies) &&
    canonical(at(at(document, 'versions'), 'workflow')) === canonical(at(at(document, 'run'), 'workflow'))
  );
}

const nameOf = (cost: Json) => canonical([at(cost, 'provider'), at(cost, 'model')]);

function summed(costs: Json[]): Json {
  const sum = (field: string, one = 0) =>
    costs.reduce<number>((total, cost) => total + Number(at(cost, field) ?? one), 0);
  const isPriced = costs.every((cost) => at(cost, 'usd') !== null);
  return {
    provider: at(costs[0], 'provider'),
    model: at(costs[0], 'model'),
    calls: costs.reduce<number>((total, cost) => total + Number(at(cost, 'calls') ?? 1), 0),
    inputTokens: sum('inputTokens'),
    outputTokens: sum('outputTokens'),
    ...(isPriced && { usd: sum('usd') }),
  };
}
