import type { RecordedEvent } from '../../../run/events/replay-state.ts';
import { groupedBy } from '../../../run/grouped-by.ts';
import type { EvidenceDocument } from '../../bundle/document.ts';
import type { EvidenceStep } from '../../bundle/step-entry.ts';
import { ApprovalHistories, type ApprovalHistory } from './approval-history.ts';
import { indexOfApproval, text } from './event-fields.ts';

/** An event with its commit and its position among all events of the run. */
export interface PlacedEvent {
  event: RecordedEvent;
  seq: number;
  at: string;
  place: number;
}

/** One attempt at a call: a `write.intended`, and what the commits say about it. */
export interface Attempt {
  index: number;
  step: string;
  intended: PlacedEvent;
  /** The `step.claimed` right before it. */
  claimed?: PlacedEvent;
  /** The last `policy.decided` of its step before it. */
  decided?: PlacedEvent;
  /** The approval that the step depends on. */
  approvalId?: string;
  /** People were asked to approve the call of this step before. */
  wasAsked: boolean;
  /** The status of the run after the commit. */
  status: string;
  /** A request to stop the run that was open before the commit. */
  stop?: PlacedEvent;
}

/** What the rules check: the events of a run in order, by attempt and by approval. */
export interface RunHistory {
  document: EvidenceDocument;
  events: readonly PlacedEvent[];
  attempts: readonly Attempt[];
  approvals: ReadonlyMap<string, ApprovalHistory>;
  /** The last decision on the step of each `approval.covered`. */
  coveredDecisions: ReadonlyMap<PlacedEvent, PlacedEvent | undefined>;
  /** The events about each write, by its key. */
  ofWrite: ReadonlyMap<string, readonly PlacedEvent[]>;
  /** The entries of the steps, by index. */
  steps: ReadonlyMap<number, EvidenceStep>;
}

interface StepNow {
  decided?: PlacedEvent;
  approvalId?: string;
  wasAsked: boolean;
}

export function runHistory(document: EvidenceDocument): RunHistory {
  const events = placedEvents(document);
  const statusAfter = statusesAfter(events);
  const approvals = new ApprovalHistories();
  const steps = new Map<number, StepNow>();
  const attempts: Attempt[] = [];
  const coveredDecisions = new Map<PlacedEvent, PlacedEvent | undefined>();
  let stop: PlacedEvent | undefined;
  for (const placed of events) {
    const { event, seq, place } = placed;
    const index = indexNamed(event);
    const step = stepNow(steps, index);
    follow(step, placed);
    approvals.take(placed, step.decided);
    if (event.type === 'approval.covered') coveredDecisions.set(placed, step.decided);
    if (event.type === 'run.stop_requested') stop = placed;
    if (event.type === 'run.status_changed' && endsStop(event)) stop = undefined;
    if (event.type !== 'write.intended') continue;
    const before = events[place - 1];
    const claimed = before?.event.type === 'step.claimed' && before.seq === seq ? before : undefined;
    const called = Number(claimed?.event.index ?? -1);
    const { decided, approvalId, wasAsked } = stepNow(steps, called);
    attempts.push({
      ...{ index: called, step: text(event.step), intended: placed, wasAsked, status: statusAfter.get(seq) ?? '' },
      ...(claimed && { claimed }),
      ...(decided && { decided }),
      ...(approvalId !== undefined && { approvalId }),
      ...(stop && stop.seq < seq && { stop }),
    });
  }
  return {
    ...{ document, events, attempts, approvals: approvals.all, coveredDecisions },
    ofWrite: groupedBy(
      events.filter(({ event }) => typeof event.receiptKey === 'string'),
      ({ event }) => text(event.receiptKey),
    ),
    steps: new Map(document.steps.map((entry) => [entry.index, entry])),
  };
}

function placedEvents({ commits }: EvidenceDocument): PlacedEvent[] {
  const all = commits.flatMap(({ seq, at, events }) => events.map((event) => ({ event, seq, at })));
  return all.map((each, place) => ({ ...each, place }));
}

/** The status of the run after each commit. */
function statusesAfter(events: readonly PlacedEvent[]): Map<number, string> {
  const statuses = new Map<number, string>();
  let status = 'queued';
  for (const { event, seq } of events) {
    if (event.type === 'run.status_changed') status = text(event.to);
    statuses.set(seq, status);
  }
  return statuses;
}

/** The index of the step that an event is about. */
function indexNamed({ index, approvalId, asks, type }: RecordedEvent): number {
  if (typeof index === 'number') return index;
  const asksForCall = type === 'approval.requested' && asks !== 'step';
  return asksForCall || type === 'approval.edited' ? indexOfApproval(approvalId) : -1;
}

function stepNow(steps: Map<number, StepNow>, index: number): StepNow {
  const known = steps.get(index);
  if (known) return known;
  const step: StepNow = { wasAsked: false };
  steps.set(index, step);
  return step;
}

/** What the step depends on, as docs/evidence-format.md defines `grounds`. */
function follow(step: StepNow, placed: PlacedEvent): void {
  const { event } = placed;
  switch (event.type) {
    case 'policy.decided':
      step.decided = placed;
      break;
    case 'approval.requested':
    case 'approval.covered':
      if (event.asks === 'step') break;
      step.approvalId = text(event.approvalId);
      step.wasAsked = true;
      break;
    case 'approval.stale':
      if (step.approvalId === event.approvalId) delete step.approvalId;
      break;
    case 'step.failed':
      delete step.approvalId;
  }
}

const endsStop = ({ from, to }: RecordedEvent): boolean =>
  to === 'rolling_back' || (from === 'paused' && to === 'running');
