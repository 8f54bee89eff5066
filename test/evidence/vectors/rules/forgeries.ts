import type { EvidenceDocument } from '../../../../lambdas/evidence/bundle/document.ts';
import { hashOf, sha256Hex } from '../../../../lambdas/run/canonical-json.ts';
import type { RecordedEvent } from '../../../../lambdas/run/events/replay-state.ts';
import { later } from '../../../../lambdas/run/lease.ts';
import {
  all,
  change,
  changeAll,
  commit,
  type Events,
  insert,
  moved,
  one,
  rehash,
  remove,
  setTime,
} from './edit-events.ts';
import type { Forgery } from './forged.ts';

/** A history, and the rules that it breaks; none for one that nearly breaks its rule. */
export interface Made {
  rule: number;
  breaks: number[];
  what: string;
  of: 'approved' | 'edited' | 'phased' | 'rolledBack';
  forgery: Forgery;
}

const OTHER_HASH = sha256Hex('another write');
const OTHER_TARGET = `servicenow:acme:incident:${'2'.repeat(32)}`;
/** Only the decision right before the write. */
const LAST_DECISION = { from: -1, everywhere: false };
const CLAIM = ['policy.decided', 'step.claimed', 'write.intended'];

const made =
  (of: Made['of']) =>
  (rule: number, what: string, forgery: Forgery, also: number[] = []): Made => ({
    ...{ rule, breaks: [rule, ...also].sort((a, b) => a - b), what, of, forgery },
  });
const nearly =
  (of: Made['of']) =>
  (rule: number, what: string, forgery: Forgery = () => {}): Made => ({
    ...{ rule, breaks: [], what, of, forgery },
  });

const [approved, phased, rolledBack] = [made('approved'), made('phased'), made('rolledBack')];
const [nearlyApproved, nearlyEdited, nearlyPhased] = [nearly('approved'), nearly('edited'), nearly('phased')];
const nearlyRolledBack = nearly('rolledBack');

/** The second decision and the begun call, as they are in the bundle. */
const begun = (events: Events): RecordedEvent[] => structuredClone(commit(events, 5));

/** Removes the whole approval: commits 3 and 4 have only its events. */
function withoutApproval(events: Events): void {
  remove(events, 'approval.requested');
  const asked = commit(events, 2);
  asked.splice(
    asked.findIndex(({ to }) => to === 'waiting_approval'),
    1,
  );
  events.splice(2, 2);
}

/** Changes the action of all decisions; approvals name the new hash. */
function changeAction(events: Events, document: EvidenceDocument, facts: Record<string, unknown>): void {
  for (const { action } of all(events, 'policy.decided')) Object.assign(action as object, facts);
  rehash(events, document);
}

const CALLS: Made[] = [
  approved(1, 'policy does not decide again before the write', (events) => {
    commit(events, 5).shift();
  }),
  nearlyApproved(1, 'another event is between the decision and the claim', (events) =>
    insert(events, 5, 'step.claimed', { type: 'run.noted' }),
  ),
  approved(2, 'the write is made after policy denied it', (events) => {
    change(events, 'policy.decided', { verdict: 'deny', tier: undefined, quorum: undefined, groups: undefined }, -1);
  }),
  approved(2, 'the verdict of policy is not known', (events) =>
    change(events, 'policy.decided', { verdict: 'perhaps' }, -1),
  ),
  nearlyApproved(2, 'policy denied it first and then decided again', (events) => {
    const [decided] = begun(events);
    insert(events, 5, 'policy.decided', { ...(decided as RecordedEvent), verdict: 'deny' });
  }),
  approved(3, 'the write has another target than the one that policy decided on', (events) =>
    change(events, 'write.intended', { target: OTHER_TARGET }),
  ),
  approved(3, 'the write is made with another tool than the one that policy decided on', (events) =>
    change(events, 'write.intended', { tool: 'http.request' }),
  ),
  nearlyApproved(3, 'policy decided on another target first', (events, document) => {
    const [decided] = begun(events) as [RecordedEvent];
    const other = { ...decided, target: OTHER_TARGET };
    rehash([[other]], document);
    insert(events, 5, 'policy.decided', other);
  }),
];

const APPROVALS: Made[] = [
  approved(4, 'no approval is requested, although policy requires one', withoutApproval),
  approved(4, 'no approval is requested for a write with high blast radius', (events, document) => {
    withoutApproval(events);
    changeAll(events, ['policy.decided'], { verdict: 'allow' });
    changeAction(events, document, { blastRadius: 'high' });
  }),
  approved(4, 'no approval is requested for a target that a model chose', (events, document) => {
    const derived = [{ field: 'sysId', how: 'chosen', from: ['ask'] }];
    withoutApproval(events);
    changeAll(events, ['policy.decided'], { verdict: 'allow', derived });
    Object.assign(document.steps[0]?.action ?? {}, { derived });
    rehash(events, document);
  }),
  approved(4, 'the approval is dropped, and policy allows the write afterwards', (events) => {
    const { approvalId } = one(events, 'approval.requested');
    change(events, 'policy.decided', { verdict: 'allow' }, -1);
    const stale = { type: 'approval.stale', step: 'assign', index: 0, approvalId, because: 'changed' };
    insert(events, 5, 'step.claimed', { ...stale, approvedHash: OTHER_HASH, actionHash: OTHER_HASH });
  }),
  nearlyApproved(4, 'no approval is requested, and none is required', (events) => {
    withoutApproval(events);
    changeAll(events, ['policy.decided'], { verdict: 'allow' });
  }),
  approved(5, 'none of two people votes', (events, { approvals }) => {
    remove(events, 'approval.voted', 'approval.decided');
    Object.assign(approvals[0] ?? {}, { status: 'notified' });
  }),
  approved(5, 'the write is made before anybody votes', (events, document) => {
    const [third, fourth] = events.splice(2, 2);
    const [running] = (fourth ?? []).splice(2, 1);
    commit(events, 3).unshift(running as RecordedEvent);
    commit(events, 4).unshift(...(third ?? []), ...(fourth ?? []));
    document.commits.splice(4, 2);
  }),
  approved(5, 'the approval is canceled', (events) => {
    const { step, approvalId } = one(events, 'approval.requested');
    remove(events, 'approval.decided');
    commit(events, 4).splice(1, 0, { type: 'approval.canceled', step, approvalId });
  }),
  nearlyApproved(5, 'the last vote is in the commit of the write', (events) => {
    const votes = commit(events, 4).splice(0, 2);
    commit(events, 5).unshift(...votes);
  }),
  approved(6, 'other values are written than people approved', (events, document) => {
    const fields = { category: OTHER_HASH };
    change(events, 'policy.decided', { fields }, -1);
    change(events, 'write.intended', { requestHash: hashOf(fields) });
    rehash(events, document, LAST_DECISION);
  }),
  approved(6, 'another target is written than people approved', (events, document) => {
    for (const type of ['policy.decided', 'write.intended']) change(events, type, { target: OTHER_TARGET }, -1);
    rehash(events, document, LAST_DECISION);
  }),
  approved(6, 'another tool is called than people approved', (events, document) => {
    for (const type of CLAIM) change(events, type, { tool: 'http.request' }, -1);
    rehash(events, document, LAST_DECISION);
  }),
  approved(6, 'another policy set decided than people saw', (events, document) => {
    change(events, 'policy.decided', { policyHash: OTHER_HASH }, -1);
    rehash(events, document, LAST_DECISION);
  }),
  phased(6, 'an approval covers a write that is not of its phase', (events) => {
    const [write] = (one(events, 'approval.requested').phase as { writes: Record<string, unknown>[] }).writes;
    Object.assign(write ?? {}, { actionHash: OTHER_HASH });
  }),
  nearlyEdited(6, 'the write was edited, and people approved the edited write'),
  nearlyPhased(6, 'the write is one of a phase that was approved'),
  approved(7, 'the write is made when the approval expires', (events, { commits }) =>
    change(events, 'approval.requested', { expiresAt: commits[4]?.at }),
  ),
  approved(7, 'people vote after the approval expired', (events, { commits }) =>
    change(events, 'approval.requested', { expiresAt: commits[2]?.at }),
  ),
  nearlyApproved(7, 'the write is made a millisecond before the approval expires', (events, { commits }) =>
    change(events, 'approval.requested', { expiresAt: later(commits[4]?.at ?? '', 1) }),
  ),
  approved(8, 'fewer people are asked than policy requires', (events) =>
    change(events, 'approval.requested', { quorum: 1 }),
  ),
  approved(8, 'nobody has to approve', (events) => {
    change(events, 'approval.requested', { quorum: 0 });
    changeAll(events, ['policy.decided'], { verdict: 'allow' });
  }),
  approved(8, 'a lower tier is asked than policy requires', (events) =>
    change(events, 'approval.requested', { tier: 'low' }),
  ),
  approved(8, 'another group is asked than policy requires', (events) => {
    changeAll(events, ['policy.decided'], { groups: [['dba', 'sre']] });
    change(events, 'approval.requested', { groups: [['dba', 'desk']] });
    changeAll(events, ['approval.voted'], { rights: { role: 'approver', tier: 'high', groups: ['dba'] } });
  }),
  approved(8, 'the tier high is not asked for a destructive write', (events, document) =>
    changeAction(events, document, { destructive: true }),
  ),
  nearlyApproved(8, 'more is asked than policy requires', (events) => {
    changeAll(events, ['policy.decided'], { groups: [['dba', 'sre']] });
    change(events, 'approval.requested', { tier: 'high', groups: [['dba'], ['desk']] });
    changeAll(events, ['approval.voted'], { rights: { role: 'approver', tier: 'high', groups: ['dba', 'desk'] } });
  }),
];

const VOTES: Made[] = [
  approved(9, 'one of two people approves', (events) => {
    commit(events, 3).splice(0, 1, { type: 'run.noted' });
    change(events, 'approval.decided', { people: ['ben'] });
  }),
  approved(9, 'one person votes twice', (events) => {
    change(events, 'approval.voted', { person: 'ben' });
    change(events, 'approval.decided', { people: ['ben', 'ben'] });
  }),
  approved(9, 'a person is counted who did not vote', (events) =>
    change(events, 'approval.decided', { people: ['ana', 'olivia'] }),
  ),
  approved(9, 'two people vote on behalf of one', (events) => {
    for (const which of [0, 1]) change(events, 'approval.voted', { onBehalfOf: 'olivia' }, which);
  }),
  made('edited')(9, 'a vote before the edit counts', (events) => {
    const [vote] = commit(events, 4).splice(0, 1, { type: 'run.noted' });
    commit(events, 3).unshift(vote as RecordedEvent);
  }),
  nearlyApproved(9, 'a third vote is not counted', (events) =>
    insert(events, 4, 'approval.voted', { ...one(events, 'approval.voted'), person: 'olivia' }),
  ),
  approved(10, 'a maker approves', (events) => change(events, 'approval.requested', { makers: ['ana'] })),
  approved(10, 'the person behind a program that is a maker approves', (events) =>
    change(events, 'approval.requested', { makers: ['machine:deploy@ana'] }),
  ),
  approved(10, 'a person approves on behalf of a maker', (events) => {
    change(events, 'approval.requested', { makers: ['olivia'] });
    change(events, 'approval.voted', { onBehalfOf: 'olivia' });
  }),
  made('edited')(10, 'an editor approves the edited write', (events) => {
    change(events, 'approval.voted', { person: 'olivia' });
    change(events, 'approval.decided', { people: ['olivia', 'ben'] });
  }),
  nearlyApproved(10, 'a maker has a name that begins like that of a voter', (events) =>
    change(events, 'approval.requested', { makers: ['ana.m', 'machine:ana@olivia'] }),
  ),
  approved(11, 'the person who requested the run is not a maker', (events) => requestedBy(events, 'chloe')),
  made('edited')(11, 'an editor is not a maker', (events) => change(events, 'approval.edited', { makers: [] })),
  nearlyApproved(11, 'the person behind the program that requested the run is a maker', (events) => {
    requestedBy(events, 'machine:deploy@chloe');
    change(events, 'approval.requested', { makers: ['chloe'] });
  }),
  nearlyApproved(11, 'a schedule requested the run', (events) => requestedBy(events, 'schedule:nightly')),
  approved(
    12,
    'both people reject, and the write is made',
    (events) => {
      for (const which of [0, 1]) change(events, 'approval.voted', { decision: 'reject' }, which);
    },
    [9],
  ),
  approved(12, 'one person rejects, and two others approve', (events) =>
    insert(events, 4, 'approval.voted', { ...one(events, 'approval.voted'), person: 'olivia', decision: 'reject' }),
  ),
  approved(12, 'the approval is decided twice', (events) =>
    insert(events, 4, 'run.status_changed', structuredClone(one(events, 'approval.decided'))),
  ),
  nearlyApproved(12, 'a person rejects, and nothing is written', (events, document) => {
    const error = { code: 'APPROVAL_REJECTED', message: { sha256: OTHER_HASH, bytes: 1 } };
    const { step } = one(events, 'approval.requested');
    change(events, 'approval.voted', { decision: 'reject' }, -1);
    change(events, 'approval.decided', { status: 'rejected', people: ['ben'] });
    commit(events, 4).splice(
      2,
      1,
      { type: 'step.failed', step, index: 0, error },
      { ...moved('waiting_approval', 'failed_terminal'), error },
    );
    events.splice(4, 2);
    document.commits.splice(4, 2);
    delete document.steps[0]?.receiptKey;
    delete document.steps[0]?.output;
  }),
];

function requestedBy(events: Events, actor: string): void {
  commit(events, 1).push({ type: 'run.requested', actor });
}

const ROLLBACKS: Made[] = [
  approved(13, 'the write is made while the run is paused', (events) => {
    commit(events, 4).push(moved('running', 'paused'));
    commit(events, 6).unshift(moved('paused', 'running'));
  }),
  rolledBack(13, 'a step writes while the run is rolled back', (events) => {
    const [decided, claimed, intended] = structuredClone(commit(events, 5)).slice(2) as [
      RecordedEvent,
      RecordedEvent,
      RecordedEvent,
    ];
    const key = `${String(intended.receiptKey)}:again`;
    Object.assign(claimed, { leaseVersion: 2, attempt: 2 });
    commit(events, 7).unshift(decided, claimed, { ...intended, receiptKey: key });
    const settled = { type: 'write.settled', step: 'gone', receiptKey: key, outcome: 'failed' };
    commit(events, 8).unshift(settled, structuredClone(one(events, 'step.failed')));
  }),
  nearlyApproved(13, 'the commit of the write resumes the run', (events) => {
    commit(events, 4).push(moved('running', 'paused'));
    commit(events, 5).push(moved('paused', 'running'));
  }),
  approved(14, 'the write is made after a person canceled the run', (events) => commit(events, 4).push(stop('cancel'))),
  nearlyApproved(14, 'a person paused and resumed the run before the write', (events) => {
    commit(events, 4).push(stop('pause'), moved('running', 'paused'));
    commit(events, 5).unshift(moved('paused', 'running'));
  }),
  rolledBack(15, 'a write is undone that was never made', (events) => {
    for (const event of events.flat()) if (event.index === 5000) event.index = 5007;
  }),
  rolledBack(15, 'a write is undone that failed', (events) => {
    for (const event of events.flat()) if (event.index === 5000) event.index = 5003;
  }),
  nearlyRolledBack(15, 'only writes that were made are undone'),
  rolledBack(16, 'an older write is undone before the result of a newer one is known', (events) => {
    const eighth = commit(events, 8);
    const [noted] = eighth.splice(
      eighth.findIndex(({ type, step }) => type === 'write.compensated' && step === 'note'),
      1,
    );
    eighth.push(noted as RecordedEvent);
  }),
  nearlyRolledBack(16, 'a newer write that cannot be undone is recorded first'),
];

const stop = (kind: string): RecordedEvent => ({ type: 'run.stop_requested', kind, initiator: 'user', actor: 'oscar' });

const ORDER: Made[] = [
  approved(17, 'the first claim is the fifth attempt', (events) => change(events, 'step.claimed', { attempt: 5 })),
  approved(17, 'the step is claimed again while its lease is valid', (events, document) =>
    again(events, document, 30_000),
  ),
  approved(17, 'two claims have one lease version', (events, document) => {
    again(events, document, 90_000);
    change(events, 'step.claimed', { leaseVersion: 1 }, -1);
  }),
  nearlyApproved(17, 'the step is claimed again when its lease has ended', (events, document) =>
    again(events, document, 60_000),
  ),
  approved(18, 'the write is settled twice', (events) =>
    insert(events, 6, 'step.succeeded', structuredClone(one(events, 'write.settled'))),
  ),
  approved(18, 'a write that succeeded is made again', (events, document) => {
    again(events, document, 90_000);
    commit(events, 6).unshift(structuredClone(one(events, 'write.settled')));
  }),
  nearlyApproved(18, 'an unknown outcome becomes known', (events) =>
    insert(events, 6, 'write.settled', { ...one(events, 'write.settled'), outcome: 'unknown' }),
  ),
  approved(19, 'times go back by a millisecond', (_events, document) =>
    setTime(document, 4, later(document.commits[2]?.at ?? '', -1)),
  ),
  nearlyApproved(19, 'two commits have one time', (_events, document) =>
    setTime(document, 4, document.commits[2]?.at ?? ''),
  ),
  approved(20, 'the run begins without being queued first', (events) => {
    commit(events, 2).splice(0, 1);
  }),
  approved(20, 'a status follows that is not allowed', (events) => {
    commit(events, 2).push(moved('waiting_approval', 'waiting_external'));
    Object.assign(all(commitsFrom(events, 4), 'run.status_changed')[0] ?? {}, { from: 'waiting_external' });
  }),
  approved(20, 'the run ends before its last commit', (events) => {
    commit(events, 6).push({ type: 'run.noted' });
    events.push([{ type: 'run.noted' }]);
  }),
  nearlyApproved(20, 'the run waits for a retry before the write', (events) => {
    commit(events, 4).push(moved('running', 'failed_retryable'));
    commit(events, 5).push(moved('failed_retryable', 'running'));
  }),
];

const VALUES: Made[] = [
  approved(21, 'the action hash is of other values', (events) => {
    const fields = { category: OTHER_HASH };
    changeAll(events, ['policy.decided'], { fields });
    change(events, 'write.intended', { requestHash: hashOf(fields) });
  }),
  approved(21, 'the action hash is of an action with low risk', (events) => {
    for (const { action } of all(events, 'policy.decided')) Object.assign(action as object, { risk: 'low' });
  }),
  nearlyApproved(21, 'people approved another input with the same fields', (events, document) => {
    changeAll(events, ['policy.decided'], { inputDigest: OTHER_HASH });
    rehash(events, document);
  }),
  approved(22, 'other values are sent than policy decided on', (events) =>
    change(events, 'write.intended', { requestHash: OTHER_HASH }),
  ),
  nearlyEdited(22, 'the values of the edited write are sent'),
  ...[
    ['a member', { role: 'member', tier: 'high', groups: [] }],
    ['an approver for low risk', { role: 'approver', tier: 'low', groups: [] }],
    ['an operator', { role: 'operator', tier: 'high', groups: [] }],
  ].map(([who, rights]) =>
    approved(23, `${who} approves a write with medium risk`, (events) => change(events, 'approval.voted', { rights })),
  ),
  approved(23, 'a person of another group approves', (events) => {
    changeAll(events, ['policy.decided', 'approval.requested'], { groups: [['dba']] });
    changeAll(events, ['approval.voted'], { rights: { role: 'owner', tier: 'high', groups: ['desk'] } });
  }),
  nearlyApproved(23, 'an owner approves, whose tier is low', (events) =>
    change(events, 'approval.voted', { rights: { role: 'owner', tier: 'low', groups: [] } }),
  ),
];

const commitsFrom = (events: Events, seq: number): Events => events.slice(seq - 1);

/** A second attempt, this long after the first. */
function again(events: Events, document: EvidenceDocument, afterMs: number): void {
  const second = begun(events);
  const first = document.commits[4]?.at ?? '';
  change([second], 'step.claimed', { leaseVersion: 2, attempt: 2, leaseExpiresAt: later(first, afterMs + 60_000) });
  change(events, 'step.claimed', { leaseExpiresAt: later(first, 60_000) });
  events.splice(5, 0, second);
  setTime(document, 6, later(first, afterMs));
}

export const FORGERIES: readonly Made[] = [...CALLS, ...APPROVALS, ...VOTES, ...ROLLBACKS, ...ORDER, ...VALUES];
