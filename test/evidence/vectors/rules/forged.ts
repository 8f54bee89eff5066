import {
  awsRequestsOf,
  decisionsOf,
  policiesOf,
  spentBy,
} from '../../../../lambdas/evidence/bundle/derived-entries.ts';
import type { EvidenceDocument } from '../../../../lambdas/evidence/bundle/document.ts';
import { DocumentTexts, indexOf } from '../../../../lambdas/evidence/bundle/document-texts.ts';
import { replayOf } from '../../../../lambdas/evidence/verify/check-replay.ts';
import { hashOf } from '../../../../lambdas/run/canonical-json.ts';
import { genesisHash } from '../../../../lambdas/run/commit.ts';
import type { RecordedEvent } from '../../../../lambdas/run/events/replay-state.ts';
import { later } from '../../../../lambdas/run/lease.ts';

type Fields = Record<string, unknown>;
export type Forgery = (events: RecordedEvent[][], document: EvidenceDocument) => void;

const COMMITS_EVERY_MS = 1_000;

/**
 * The document of a run with other events: like somebody who has the key of the stage and makes up a history. Its chain,
 * entries and index agree with each other, so only the rules can show the forgery.
 */
export function forged(base: EvidenceDocument, forgery: Forgery = () => {}): EvidenceDocument {
  const document = structuredClone(base);
  const began = document.run.createdAt;
  for (const [index, commit] of document.commits.entries()) commit.at = later(began, index * COMMITS_EVERY_MS);
  const events = document.commits.map((commit) => commit.events as RecordedEvent[]);
  forgery(events, document);
  rechain(document, events);
  provenEntries(document);
  return document;
}

function rechain(document: EvidenceDocument, events: RecordedEvent[][]): void {
  const { run, commits } = document;
  const times = commits.map(({ at }) => at);
  let prevHash = genesisHash(run.tenant, run.runId);
  document.commits = events.map((each, index) => {
    const at = times[index] ?? later(times.at(-1) ?? '', (index - times.length + 1) * COMMITS_EVERY_MS);
    const unsealed = { seq: index + 1, prevHash, at, events: each };
    prevHash = hashOf(unsealed);
    return { ...unsealed, hash: prevHash };
  });
  document.head = { hash: prevHash, count: events.length };
}

/** Gives each entry the fields that the commits prove. */
function provenEntries(document: EvidenceDocument): void {
  const { commits } = document;
  const replay = replayOf(document.run.runId, commits);
  document.run = overlaid(document.run, replay.run);
  document.trigger = overlaid(document.trigger, replay.trigger);
  const [anyStep, anyReceipt, anyApproval] = [document.steps[0], document.receipts[0], document.approvals[0]];
  document.steps = [...replay.steps].map(([index, { fields }]) =>
    overlaid(document.steps.find((step) => step.index === index) ?? anyStep, fields),
  );
  document.receipts = [...replay.writes].map(([key, { fields }]) =>
    overlaid(document.receipts.find((receipt) => receipt.key === key) ?? anyReceipt, {
      ...fields,
      openSince: fields.intentAt,
    }),
  );
  document.approvals = [...replay.approvals].map(([id, fields]) =>
    overlaid(document.approvals.find(({ approvalId }) => approvalId === id) ?? anyApproval, fields),
  );
  document.steps.sort((a, b) => a.index - b.index);
  document.receipts.sort((a, b) => a.index - b.index || (a.key < b.key ? -1 : 1));
  document.decisions = decisionsOf(commits);
  document.cost = spentBy(document.run.runId, document.receipts);
  document.awsRequestsAtLeast = awsRequestsOf(document);
  document.versions.policies = policiesOf(document.decisions);
  document.index = indexOf(new DocumentTexts(document));
}

function overlaid<Entry>(entry: Entry | undefined, fields: unknown): Entry {
  if (Array.isArray(fields)) {
    const shown: unknown[] = Array.isArray(entry) ? entry : [];
    return fields.map((each, index) => overlaid(shown[index], each)) as Entry;
  }
  if (typeof fields !== 'object' || fields === null) return fields as Entry;
  const isDigest = Object.keys(fields).join() === 'sha256' && entry === undefined;
  const result: Fields = { ...(isDigest ? { bytes: 0 } : (entry as Fields | undefined)) };
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) delete result[name];
    else result[name] = overlaid(result[name], value);
  }
  return result as Entry;
}
