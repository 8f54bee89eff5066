import type { PlantedBug } from './planted-bugs.ts';

const ANNOUNCE = 'lambdas/approval/announce-approval.ts';
const WAIT = 'lambdas/approval/wait-for-decision.ts';
const OUTBOX = 'lambdas/outbox/outbox.ts';
const STORE = 'test/fakes/memory/memory-run-store.ts';
const SHAPES = 'needs-approval';
const SEED_SHAPES = 'needs-approval,edited-first,parallel-approvals';

const ONE_CARD = 'an approval has one card';
const SHOWS_DECISION = 'every card shows the decision';
const NO_EXECUTION = 'an approval that is decided before its reminder needs no execution';

/** The publication repairs late what others have missed, so that their bugs show only without its search. */
const NO_SEARCH = {
  file: 'lambdas/approval/publish-decision.ts',
  find: 'if (card) await cards.update',
  replace: 'if (card && !card) await cards.update',
};

/** Bugs in posting the cards of approvals, and in starting their executions. */
export const PLANTED_CARD_BUGS: readonly PlantedBug[] = [
  {
    name: 'two invocations announce an approval',
    edits: [
      {
        file: ANNOUNCE,
        find: 'if (!(await runs.bumpOutbox(entry, dueAt))) return;',
        replace: 'await runs.bumpOutbox(entry, dueAt);',
      },
    ],
    violates: [ONE_CARD],
    shapes: 'none',
    seedShapes: SEED_SHAPES,
  },
  {
    name: 'a second announcement claims the outbox entry after the card is posted',
    edits: [
      {
        file: OUTBOX,
        find: 'return { ...entry, dueAt: entry.clocks.remindAt };',
        replace: 'return { ...entry, attempts: 0, dueAt: entry.clocks.remindAt };',
      },
    ],
    violates: [ONE_CARD],
    shapes: 'none',
    seedShapes: SEED_SHAPES,
  },
  {
    name: 'an execution does not search for the card of an announcement',
    edits: [{ file: WAIT, find: " || escalationStage !== 'notify' || isAnnouncedFirst(approval);", replace: ';' }],
    violates: [ONE_CARD, SHOWS_DECISION],
    shapes: SHAPES,
    faults: 'crash_after',
  },
  {
    name: 'the publication of a decision searches for no card',
    edits: [NO_SEARCH],
    violates: [SHOWS_DECISION],
    shapes: 'none',
    seedShapes: 'overdue-together',
  },
  {
    name: 'an execution leaves the card of a closed approval as it is',
    edits: [
      { file: WAIT, find: 'if (closed && lost) await', replace: 'if (closed && lost && !lost) await' },
      NO_SEARCH,
    ],
    violates: [SHOWS_DECISION],
    shapes: 'none',
    seedShapes: SEED_SHAPES,
  },
  {
    name: 'a decision deletes the outbox entry of a card that is being posted',
    edits: [{ file: STORE, find: ' || now.attempts === 0;', replace: ' || now.attempts >= 0;' }, NO_SEARCH],
    violates: [SHOWS_DECISION],
    shapes: 'none',
    seedShapes: SEED_SHAPES,
  },
  {
    name: 'an announcement that a decision overtakes leaves its card as it is',
    edits: [
      { file: ANNOUNCE, find: 'if (approval && card) await cards', replace: 'if (approval && !card) await cards' },
      NO_SEARCH,
    ],
    violates: [SHOWS_DECISION],
    shapes: 'none',
    seedShapes: SEED_SHAPES,
  },
  {
    name: 'a decision does not cancel the start of the execution',
    edits: [
      {
        file: 'lambdas/approval/publish-decision.ts',
        find: 'else await runs.cancelStart(startEntryId(approval));',
        replace: '',
      },
    ],
    violates: [NO_EXECUTION, 'a decision ends the wait for it'],
    shapes: 'none',
    seedShapes: SEED_SHAPES,
  },
  {
    name: 'the outbox entry is deleted when the card is stored',
    edits: [
      {
        file: STORE,
        find: 'write(this.#outbox, [start.id], start, (now)',
        replace: 'write(this.#outbox, [start.id], undefined, (now)',
      },
    ],
    violates: ['an open approval has an outbox entry or a token'],
    shapes: SHAPES,
    faults: 'crash_after',
  },
];
