import { approvalAt, type Event, type History, historyOf, indexIn } from './second-replay.ts';
import { at, canonical, type Fields, type Json, listAt, sha256 } from './second-verifier.ts';

/** "The rules", each as a question about the list of all events: whether it is broken somewhere. */
interface Run extends History {
  document: Json;
  /** All `write.intended`. */
  calls: Event[];
  asked: Event[];
}
type Check = (run: Run) => boolean;

export function brokenRules(document: Json): number[] {
  const history = historyOf(document);
  const of = (type: string) => history.events.filter((event) => event.type === type);
  const run: Run = { ...history, document, calls: of('write.intended'), asked: of('approval.requested') };
  const isInRollbackRun = at(at(document, 'run'), 'rollbackOf') !== null;
  const isSalted = of('run.enriched').some(({ salted }) => salted === true);
  return Object.entries(BROKEN)
    .filter(
      ([number, check]) => !(number === '16' && isInRollbackRun) && (Number(number) < 21 || isSalted) && check(run),
    )
    .map(([number]) => Number(number));
}

const FIRST_UNDO = 5000;
const list = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : []);
const claimOf = ({ events }: Run, call: Event): Event | undefined => {
  const before = events[call.place - 1];
  return before?.type === 'step.claimed' && before.commit === call.commit ? before : undefined;
};
const indexOf = (run: Run, call: Event): number => Number(claimOf(run, call)?.index ?? -1);
const lastBefore = ({ events }: Run, place: number, is: (event: Event) => boolean) =>
  events.slice(0, place).findLast(is);
const decisionOn = (run: Run, index: number, place: number) =>
  lastBefore(run, place, ({ type, index: which }) => type === 'policy.decided' && which === index);
const decisionFor = (run: Run, call: Event) => decisionOn(run, indexOf(run, call), call.place);
const actionAt = ({ document }: Run, index: number): Json =>
  at(
    listAt(document, 'steps').find((step) => at(step, 'index') === index),
    'action',
  );

/** The approval that a call depends on, as its request. */
function approvalOf(run: Run, call: Event): Event | undefined {
  const id = approvalAt(run, indexOf(run, call), call.place);
  return run.asked.findLast(({ approvalId, place }) => approvalId === id && place < call.place);
}

const about = ({ events }: Run, { approvalId, place }: Event, ...types: string[]) =>
  events.filter((event) => event.place > place && event.approvalId === approvalId && types.includes(event.type));
const termsOf = (run: Run, asked: Event) => [asked, ...about(run, asked, 'approval.edited')];
const termsAt = (run: Run, asked: Event, place: number): Event =>
  termsOf(run, asked).findLast((terms) => terms.place <= place) ?? asked;
const endsOf = (run: Run, asked: Event) =>
  about(run, asked, 'approval.decided', 'approval.expired', 'approval.canceled');

/** "The status of the run after the commit". */
const statusAfter = ({ events }: Run, commit: number): Json =>
  events.findLast((event) => event.type === 'run.status_changed' && event.commit <= commit)?.to ?? 'queued';

const mustBeTwo = (action: Json): boolean =>
  action !== null &&
  at(action, 'effect') !== 'read' &&
  (at(action, 'blastRadius') === 'high' || at(action, 'destructive') === true);

function needsApproval(run: Run, call: Event): boolean {
  const index = indexOf(run, call);
  const decided = decisionFor(run, call);
  const wasAsked = run.events.some(
    ({ type, asks, approvalId, index: which = indexIn(approvalId), place }) =>
      place < call.place &&
      which === index &&
      (type === 'approval.covered' || (type === 'approval.requested' && asks !== 'step')),
  );
  const derives = list(decided?.derived).length > 0 && index < FIRST_UNDO;
  return (
    decided?.verdict === 'needs_approval' || mustBeTwo(decided?.action ?? actionAt(run, index)) || derives || wasAsked
  );
}

function isApprovedCall(run: Run, call: Event, asked: Event): boolean {
  const index = indexOf(run, call);
  const decided = decisionFor(run, call);
  const same = (approved: Fields | Event | undefined, fields: string[]) =>
    fields.every((field) => approved !== undefined && approved[field] === decided?.[field]);
  if (indexIn(asked.approvalId) === index) {
    const terms = termsAt(run, asked, call.place);
    const lead = terms.leadHash ?? at(terms.phase, 'leadHash') ?? terms.actionHash;
    const shown = decisionOn(run, index, terms.place);
    return lead === decided?.actionHash && same(shown, ['tool', 'target', 'policyHash']);
  }
  const write = list(at(asked.phase, 'writes')).find((each) => at(each, 'index') === index);
  return same(write as Fields | undefined, ['actionHash', 'tool', 'target']);
}

function isPhaseHash(asked: Event, terms: Event): boolean {
  const { phase } = asked;
  if (phase === undefined) return true;
  const writes = list(at(phase, 'writes')).map((write) => ({
    step: at(write, 'step'),
    actionHash: at(write, 'actionHash'),
  }));
  const askedLater = list(at(phase, 'askedLater')).map((write) => at(write, 'step'));
  const leadHash = terms.leadHash ?? at(terms.phase, 'leadHash');
  return sha256(canonical({ phase: at(phase, 'name'), leadHash, writes, askedLater })) === terms.actionHash;
}

/** "The rights of each vote meet the terms". */
function isEligible(terms: Event, vote: Event): boolean {
  const [role, tier] = [String(at(vote.rights, 'role')), at(vote.rights, 'tier')];
  const groups = list(at(vote.rights, 'groups'));
  if (terms.operators === true && ['owner', 'admin', 'operator'].includes(role)) return true;
  const hasTier = ['owner', 'admin'].includes(role) || (role === 'approver' && rank(tier) >= rank(terms.tier));
  return hasTier && list(terms.groups).every((set) => list(set).some((group) => groups.includes(group)));
}

function isActionHash({ document }: Run, decided: Event): boolean {
  const { tool, target, derived, action, fields, inputDigest, policyHash, actionHash } = decided;
  if (action === undefined || fields === undefined || inputDigest === undefined) return false;
  const facts: Fields = { ...(action as Fields), tool: tool ?? null, target: target ?? null };
  if (derived !== undefined) facts.derived = derived;
  const workflow = at(at(document, 'run'), 'workflow');
  const hashed = { action: facts, fields, input: inputDigest, policyHash: policyHash ?? null, workflow };
  return sha256(canonical(hashed)) === actionHash;
}

const TIERS = ['low', 'medium', 'high'];
const rank = (tier: Json | undefined) => TIERS.indexOf(String(tier));

function asksEnough(run: Run, terms: Event, decided: Event | undefined, index: number): boolean {
  const two = mustBeTwo(decided?.action ?? actionAt(run, index));
  const required = decided?.verdict === 'needs_approval' ? decided : undefined;
  const quorum = Math.max(two ? 2 : 1, Number(required?.quorum ?? 0));
  const tier = Math.max(two ? rank('high') : rank('low'), required ? rank(required.tier) : 0);
  const sets = list(required?.groups) as Json[][];
  const isMet = (set: Json[]) =>
    list(terms.groups).some((own) => list(own).length > 0 && list(own).every((group) => set.includes(group)));
  const isOpenToOperators = terms.operators === true && required !== undefined;
  return Number(terms.quorum) >= quorum && rank(terms.tier) >= tier && sets.every(isMet) && !isOpenToOperators;
}

const votesAt = (run: Run, asked: Event, place: number) =>
  about(run, asked, 'approval.voted').filter(
    (vote) => vote.place > termsAt(run, asked, place).place && vote.place <= place,
  );

function hasQuorum(run: Run, asked: Event, decided: Event): boolean {
  const votes = votesAt(run, asked, decided.place).filter(({ decision }) => decision === 'approve');
  const people = list(decided.people);
  const voteOf = (person: Json) => votes.findLast((vote) => vote.person === person);
  const represented = new Set(people.map((person) => voteOf(person)?.onBehalfOf ?? person));
  const { quorum } = termsAt(run, asked, decided.place);
  return (
    people.every((person) => voteOf(person) !== undefined) &&
    new Set(people).size === people.length &&
    represented.size >= Number(quorum)
  );
}

const person = (actor: Json | undefined) => String(actor).replace(/^machine:[^@]+@/, '');
const makersAt = (run: Run, asked: Event, place: number) => {
  const makers = list(termsAt(run, asked, place).makers);
  return [...makers, ...makers.map(person)];
};

/** "Makers", as far as the commits show them. */
function dueMakers(run: Run, index: number, until: number): Json[] {
  const past = run.events.slice(0, until + 1);
  const fixedIn = past.find((event) => event.type === 'policy.decided' && event.index === index)?.commit ?? Infinity;
  const due = past.flatMap((event): Json[] => {
    const { type, actor = '', commit, place } = event;
    const early = commit < fixedIn;
    if (type === 'run.requested' && commit === 1) return String(actor).startsWith('schedule:') ? [] : [actor];
    if (type === 'run.rolls_back' || type === 'step.signaled') return early ? [actor] : [];
    if (type === 'run.stop_requested') return early && event.kind === 'rollback' ? [actor] : [];
    if (type === 'approval.edited') return indexIn(event.approvalId) === index ? [event.person ?? ''] : [];
    if (type !== 'step.retry_requested' || event.index !== index) return [];
    const before = lastBefore(
      run,
      place,
      (each) => each.index === index && (each.type === 'step.failed' || each.type === 'step.retry_requested'),
    );
    return before?.type === 'step.failed' ? [actor] : [];
  });
  const isOwnUndo = index >= FIRST_UNDO && at(at(run.document, 'run'), 'rollbackOf') === null;
  return isOwnUndo ? [...due, ...dueMakers(run, index - FIRST_UNDO, until)] : due;
}

function isFinal(run: Run, asked: Event): boolean {
  const ends = endsOf(run, asked);
  const [end] = ends;
  const rejections = about(run, asked, 'approval.voted').filter(({ decision }) => decision === 'reject');
  const rejected = ends.filter(({ status }) => status === 'rejected');
  const together = (some: Event[], others: Event[]) =>
    some.every(({ commit }) => others.some((other) => other.commit === commit));
  const late = about(run, asked, 'approval.voted', 'approval.edited').filter(({ place }) => end && place > end.place);
  return ends.length <= 1 && late.length === 0 && together(rejections, rejected) && together(rejected, rejections);
}

function isStopped({ events }: Run, call: Event): boolean {
  const past = events.filter(({ commit, place }) => commit < call.commit || place < call.place);
  const stop = past.findLast(({ type, commit }) => type === 'run.stop_requested' && commit < call.commit);
  return (
    stop !== undefined &&
    !past.some(
      ({ type, from, to, place }) =>
        type === 'run.status_changed' &&
        place > stop.place &&
        (to === 'rolling_back' || (from === 'paused' && to === 'running')),
    )
  );
}

function isUndoable(run: Run, call: Event): boolean {
  const rolledBack = at(at(run.document, 'run'), 'rollbackOf');
  if (rolledBack !== null) return listAt(rolledBack, 'steps').includes(String(call.step).replace(/^undo_/, ''));
  const undone = indexOf(run, call) - FIRST_UNDO;
  const write = run.calls.findLast((each) => each.place < call.place && indexOf(run, each) === undone);
  if (!write) return false;
  const since = run.events.slice(write.place, call.place).filter(({ receiptKey }) => receiptKey === write.receiptKey);
  const failed = since.findLast(({ type }) => type === 'write.settled')?.outcome === 'failed';
  const isCommand = String(write.tool).startsWith('agent.');
  return !since.some(({ type }) => type === 'write.reversed') && (!failed || isCommand);
}

/** The success of the last write of a step before a position. */
function success(run: Run, index: number, place: number): Event | undefined {
  if (at(actionAt(run, index), 'effect') === 'read') return undefined;
  const end = lastBefore(run, place, (event) => event.type === 'step.succeeded' && event.index === index);
  return end && run.calls.some((call) => call.place < end.place && indexOf(run, call) === index) ? end : undefined;
}

function isNewest(run: Run, call: Event): boolean {
  const index = indexOf(run, call);
  const own = success(run, index - FIRST_UNDO, call.place);
  const isFirst = !run.calls.some((each) => each.place < call.place && indexOf(run, each) === index);
  if (!own || !isFirst) return true;
  const indexes = new Set(run.calls.map((each) => indexOf(run, each)).filter((each) => each < FIRST_UNDO));
  return [...indexes].every((other) => {
    const end = success(run, other, call.place);
    const isLater = end && (end.saidAt > own.saidAt || (end.saidAt === own.saidAt && other > index - FIRST_UNDO));
    const isRecorded = lastBefore(
      run,
      call.place,
      ({ type, step }) => type === 'write.compensated' && step === end?.step,
    );
    return !isLater || isRecorded !== undefined;
  });
}

function isClaim(run: Run, call: Event): boolean {
  const claim = claimOf(run, call);
  if (!claim) return true;
  const earlier = run.calls.findLast((each) => each.place < call.place && indexOf(run, each) === claim.index);
  const before = earlier && claimOf(run, earlier);
  const isOver =
    earlier === undefined ||
    String(before?.leaseExpiresAt) <= claim.saidAt ||
    run.events
      .slice(earlier.place, claim.place)
      .some(({ type, receiptKey }) => type === 'write.settled' && receiptKey === earlier.receiptKey);
  const [lease, attempt] = [Number(claim.leaseVersion), Number(claim.attempt)];
  return (
    lease > Number(before?.leaseVersion ?? 0) &&
    attempt >= 1 &&
    attempt <= Number(before?.attempt ?? 0) + 1 &&
    String(claim.leaseExpiresAt) > claim.saidAt &&
    isOver
  );
}

function isInOrder(run: Run, { type, receiptKey, place }: Event): boolean {
  const KINDS = ['write.intended', 'write.settled', 'write.reversed'];
  const before = lastBefore(run, place, (event) => event.receiptKey === receiptKey && KINDS.includes(event.type));
  const isSettled = before?.type === 'write.settled';
  if (type === 'write.intended') return !(isSettled && before.outcome === 'succeeded');
  if (type !== 'write.settled') return true;
  return before?.type === 'write.intended' || (isSettled && before.outcome === 'unknown');
}

const MAY_FOLLOW: Record<string, string> = {
  queued: 'enriching canceled failed_terminal timed_out',
  enriching: 'ready canceled failed_terminal timed_out',
  ready: 'running canceled failed_terminal timed_out',
  running:
    'waiting_approval waiting_external failed_retryable paused rolling_back succeeded failed_terminal needs_human timed_out canceled',
  failed_retryable: 'running paused rolling_back failed_terminal timed_out canceled',
  waiting_approval: 'running paused rolling_back succeeded failed_terminal canceled',
  waiting_external: 'running succeeded failed_terminal timed_out canceled',
  paused: 'running rolling_back failed_terminal canceled',
  rolling_back: 'failed_terminal canceled needs_human',
};
const ENDS = ['succeeded', 'failed_terminal', 'needs_human', 'timed_out', 'canceled'];

function followsLifecycle({ events, document }: Run): boolean {
  const changes = events.filter(({ type }) => type === 'run.status_changed');
  const count = listAt(document, 'commits').length;
  return changes.every(({ from, to, commit }, place) => {
    const now = String(place === 0 ? 'queued' : changes[place - 1]?.to);
    const isRollbackRun = at(at(document, 'run'), 'rollbackOf') !== null;
    const allowed = `${MAY_FOLLOW[now] ?? ''}${isRollbackRun && now === 'rolling_back' ? ' succeeded' : ''}`.split(' ');
    return from === now && allowed.includes(String(to)) && (!ENDS.includes(String(to)) || commit === count);
  });
}

const someCall =
  (isBroken: (run: Run, call: Event) => boolean): Check =>
  (run) =>
    run.calls.some((call) => isBroken(run, call));
const someApproved = (isBroken: (run: Run, call: Event, asked: Event) => boolean): Check =>
  someCall((run, call) => {
    const asked = approvalOf(run, call);
    return asked !== undefined && isBroken(run, call, asked);
  });
const someAsked =
  (isBroken: (run: Run, asked: Event) => boolean): Check =>
  (run) =>
    run.asked.some((asked) => isBroken(run, asked));

const BROKEN: Record<number, Check> = {
  1: someCall((run, call) => decisionFor(run, call)?.commit !== call.commit),
  2: someCall(
    (run, call) => !['allow', 'needs_approval', undefined].includes(decisionFor(run, call)?.verdict as string),
  ),
  3: someCall((run, call) => {
    const [claim, decided] = [claimOf(run, call), decisionFor(run, call)];
    const differs = [claim, decided].some((event) => event && (event.step !== call.step || event.tool !== call.tool));
    return differs || (decided !== undefined && decided.target !== call.target);
  }),
  4: someCall((run, call) => !approvalOf(run, call) && needsApproval(run, call)),
  5: someApproved((run, call, asked) => {
    const end = endsOf(run, asked).findLast(({ place }) => place < call.place);
    return end?.type !== 'approval.decided' || end.status !== 'approved';
  }),
  6: (run) =>
    someApproved((_run, call, asked) => !isApprovedCall(run, call, asked))(run) ||
    run.asked.some((asked) => termsOf(run, asked).some((terms) => !isPhaseHash(asked, terms))),
  7: (run) =>
    someApproved((_run, call, asked) => call.saidAt >= String(asked.expiresAt))(run) ||
    run.asked.some((asked) =>
      [asked, ...about(run, asked, 'approval.voted', 'approval.edited', 'approval.decided', 'approval.expired')].some(
        ({ type, saidAt }) => saidAt >= String(asked.expiresAt) !== (type === 'approval.expired'),
      ),
    ),
  8: (run) =>
    run.asked.some((asked) =>
      termsOf(run, asked).some((terms) => {
        const index = indexIn(asked.approvalId);
        const decided = asked.asks === 'step' ? undefined : decisionOn(run, index, terms.place);
        return !asksEnough(run, terms, decided, index);
      }),
    ) ||
    run.events.some((event) => {
      const asked = run.asked.find(({ approvalId }) => approvalId === event.approvalId);
      if (event.type !== 'approval.covered' || !asked) return false;
      const index = Number(event.index);
      return !asksEnough(run, termsAt(run, asked, event.place), decisionOn(run, index, event.place), index);
    }),
  9: someAsked((run, asked) =>
    endsOf(run, asked).some((end) => end.status === 'approved' && !hasQuorum(run, asked, end)),
  ),
  10: someAsked(
    (run, asked) =>
      about(run, asked, 'approval.voted').some((vote) =>
        [vote.person, vote.onBehalfOf].some(
          (each) => each !== undefined && makersAt(run, asked, vote.place).includes(each),
        ),
      ) ||
      about(run, asked, 'approval.edited').some((edit) =>
        makersAt(run, asked, edit.place - 1).includes(edit.person ?? ''),
      ),
  ),
  11: someAsked((run, asked) =>
    termsOf(run, asked).some((terms) => {
      const makers = makersAt(run, asked, terms.place);
      const due = dueMakers(run, indexIn(asked.approvalId), terms.place);
      return due.some((maker) => !makers.includes(maker) && !makers.includes(person(maker)));
    }),
  ),
  12: someAsked((run, asked) => !isFinal(run, asked)),
  13: someCall(
    (run, call) => statusAfter(run, call.commit) !== (indexOf(run, call) >= FIRST_UNDO ? 'rolling_back' : 'running'),
  ),
  14: someCall(isStopped),
  15: someCall((run, call) => indexOf(run, call) >= FIRST_UNDO && !isUndoable(run, call)),
  16: someCall((run, call) => indexOf(run, call) >= FIRST_UNDO && !isNewest(run, call)),
  17: someCall((run, call) => !isClaim(run, call)),
  18: (run) => run.events.some((event) => !isInOrder(run, event)),
  19: ({ document }) =>
    listAt(document, 'commits').some(
      (commit, place, all) => place > 0 && String(at(commit, 'at')) < String(at(all[place - 1], 'at')),
    ),
  20: (run) => !followsLifecycle(run),
  21: (run) => run.events.some((event) => event.type === 'policy.decided' && !isActionHash(run, event)),
  22: someCall((run, call) => {
    const fields = decisionFor(run, call)?.fields;
    return fields === undefined || sha256(canonical(fields)) !== call.requestHash;
  }),
  23: someAsked((run, asked) =>
    about(run, asked, 'approval.voted').some((vote) => !isEligible(termsAt(run, asked, vote.place), vote)),
  ),
};
