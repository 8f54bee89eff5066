interface Retired {
  /** Matched in lower-case text whose identifiers were split: `claimDueSteps` and `take-up` are "take up". */
  pattern: RegExp;
  /** What to write instead. */
  write: string;
}

const retired = (pattern: string, write: string): Retired => ({
  pattern: new RegExp(`\\b(?:${pattern})\\b`, 'g'),
  write,
});

/** Words that this project no longer uses: one thing has one word, and sentences are literal. */
export const RETIRED_WORDS: readonly Retired[] = [
  // Storage and caches
  retired('kept', 'cached, stored or retained'),
  retired('keep(s|ing)? (it|them|a token|the token)', 'cache or store'),

  // The path of a run
  retired('(take|takes|taken|taking|took) up(?! to)', 'claim due steps'),
  retired('(carry|carries|carried|carrying) on', 'start ready steps, or continue'),
  retired('advance run', 'process run'),
  retired('mover', 'run changer'),
  retired('no room', 'no slot'),
  retired('parked', 'without a slot, or waiting'),
  retired('rest(s|ed|ing)? on', 'reuse an identical write, or depend on'),
  retired('made already', 'duplicate write'),
  retired('promis(e|es|ed|ing)', "outbox entry (JavaScript's Promise is fine)"),
  retired('look(s|ed|ing)? (at|for) (the|a|its|their) target', 'read the target'),
  retired('look only|looks max', 'probe only, probes max'),
  retired('what became of', 'the outcome of'),
  retired('nobody looks again', 'ignored'),

  // Rollback
  retired('(take|takes|taken|taking|took|takes next|take next) ((it|them|that) )?back', 'roll back, or undo'),
  retired('way back', 'undo, or reversal'),

  // Approvals
  retired('ladders?', 'escalation stages, or backoff'),
  retired('rungs?', 'escalation stage'),
  retired('climb(s|ed|ing)?', 'escalate'),
  retired('foreseers?', 'previewer'),
  retired('deput(y|ies)', 'delegate'),
  retired('(hold|follow) approval', 'wait for decision, publish decision'),
  retired('(open|stop at|expire) gate', 'request approval, expire approval'),
  retired('had a hand in(?! this write)', 'is a maker of'),
  retired('lets? (a|the|that|its) (write|call) happen', 'approve, or allow'),
  retired('hits much', 'has a high blast radius'),
  retired('anew', 'again'),

  // Evidence
  retired('told|tells?|tellings?', 'recorded, reported, says, shows or notifies'),
  retired('flaws?', 'problem'),

  // The API and the systems around it
  retired('(front )?doors?', 'HTTP API, or webhook endpoint'),
  retired('the outside', 'external systems, or targets'),
  retired('speakers?', 'Slack user'),
  retired('reveal(?= ?\\()', 'escape hidden characters'),
  retired('may or refuse', 'requireRight'),

  // Unusual verbs
  retired('mend(s|ed|ing)?', 'fix'),
  retired('stumbl(e|es|ed|ing)', 'fail'),
  retired('heed(s|ed|ing)?', 'respect, or use'),
  retired('vouch(es|ed|ing)?', 'confirm'),
  retired('bother(s|ed|ing)?', 'ask'),
  retired('whoever', 'the actor: the person who, the caller, the worker that'),
  retired('whatever', 'the thing: any …, every …'),
  retired('mishaps?', 'fault'),
  retired('(stand|stands|stood|standing) still', 'pause'),
  retired('all the same', 'still'),
  retired('reach(es)? far', 'has a high blast radius'),
  retired('(bring|brings|brought) about', 'cause, or create'),
  retired('unheard', 'without a notification'),
  retired('ever after', 'from then on'),
  retired('befall(s|en)?|befell', 'the fault of, or happen to'),
  retired('zombies?', 'stale worker'),
  retired('meddl(e|es|ed|ing)', 'change, or edit'),
  retired('witness(es)?|caretakers?', 'what it does: observer, operator'),
  retired('side by side', 'in parallel'),
  retired('(go|goes|going|went) on from', 'continue from'),
  retired('judg(e|es|ed) (call|by policy)', 'decide on a call'),
  retired('answers? with (a )?[1-5][0-9x]{2}', 'responds with'),
  retired('in vain|seldom|of before|know it again', 'plain words'),
  retired('without a word', 'without an error'),
  retired('comes? to rest|came to rest', 'ends'),
  retired('looks? after', 'check'),
  retired('what becomes of', 'how … continues'),
  retired('nought|forthwith|thereof|wherein|thereby|hearken(s|ed)?|begets?', 'plain words'),
];

interface Allowed {
  /** A path, or the beginning of one. */
  in: string;
  text: RegExp;
  because: string;
}

/** Names that cannot change: they are stored, on the wire, or part of a vendor's API. */
export const ALLOWED: readonly Allowed[] = [
  { in: 'lib/stack.ts', text: /'FrontDoor'/, because: 'the id of the HTTP API: another one changes its URL' },
  { in: 'lib/stack.ts', text: /'PromiseNotKept'/, because: 'the name of a metric' },
  { in: 'CHANGELOG.md', text: /\(before: .*|`take-back`/, because: 'names what was renamed' },
  { in: 'test/style/find-retired-words.ts', text: /.*promise.*/i, because: "recognizes JavaScript's Promise" },
  { in: '', text: /[`'"]kept[`'"]|ends as kept/g, because: 'a result in the compensation log, stored in bundles' },
  {
    in: 'lambdas/approval/wait-for-decision.lambda.ts',
    text: /`rung`|\.rung/g,
    because: 'executions of earlier versions use it',
  },
  {
    in: 'lambdas/run/dynamo/dynamo-run-reads.ts',
    text: /restedOnBy/g,
    because: 'receipts of earlier versions have it',
  },
  { in: '', text: /[`'"]follow_approval[`'"]/g, because: 'a kind of stored outbox entries' },
];
