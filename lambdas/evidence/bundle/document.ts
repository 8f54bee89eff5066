import * as z from 'zod';
import { Sha256 } from '../../run/digest.ts';
import { EvidenceApproval } from './approval-entry.ts';
import { EvidenceCommit } from './commit-entry.ts';
import { AwsRequests, Decision, Spent } from './derived-entries.ts';
import { WorkflowVersion } from './entry-parts.ts';
import { EvidenceReceipt } from './receipt-entry.ts';
import { EvidenceRun, EvidenceTrigger } from './run-entry.ts';
import { EvidenceStep } from './step-entry.ts';

/**
 * The document of a bundle, as docs/evidence-format.md defines it. Metadata only: text of people and external systems
 * is present as digests and shapes.
 */
export const BUNDLE_FORMAT = 'countersign.evidence/2';
/** Bundles of format 1 lack some fields of decisions and votes. */
export const BUNDLE_FORMATS = ['countersign.evidence/1', BUNDLE_FORMAT] as const;

const Versions = z.strictObject({
  /** Version of the runtime that sealed it, including connectors. */
  runtime: z.string(),
  workflow: WorkflowVersion,
  /** Hashes of all policy sets that decided. */
  policies: z.array(z.string()),
});

/** The sha256 of the canonical form of each entry. It is signed, so that a verifier can name a changed entry. */
const Index = z.strictObject({
  run: Sha256,
  trigger: Sha256,
  steps: z.array(Sha256),
  decisions: z.array(Sha256),
  approvals: z.array(Sha256),
  receipts: z.array(Sha256),
  cost: z.array(Sha256),
  awsRequestsAtLeast: Sha256,
  versions: Sha256,
});
export type Index = z.infer<typeof Index>;
export const INDEXED_SECTIONS = Object.keys(Index.shape) as (keyof Index)[];

export const EvidenceDocument = z.strictObject({
  format: z.enum(BUNDLE_FORMATS),
  run: EvidenceRun,
  trigger: EvidenceTrigger,
  steps: z.array(EvidenceStep),
  decisions: z.array(Decision),
  approvals: z.array(EvidenceApproval),
  receipts: z.array(EvidenceReceipt),
  cost: z.array(Spent),
  awsRequestsAtLeast: AwsRequests,
  versions: Versions,
  index: Index,
  commits: z.array(EvidenceCommit),
  head: z.strictObject({ hash: Sha256, count: z.int().positive() }),
});
export type EvidenceDocument = z.infer<typeof EvidenceDocument>;

const Entries = z.array(z.unknown());

/** Accepts the same commits, without a copy of each field of their events. */
const CommitOutline = EvidenceCommit.extend({ events: z.array(z.object({ type: z.string() })) });

/** The parts of a document that are compared with the signature before the entries are read. */
export const DocumentOutline = EvidenceDocument.extend({
  run: z.looseObject(EvidenceRun.pick({ tenant: true, runId: true, status: true }).shape),
  trigger: z.looseObject({}),
  steps: Entries,
  decisions: Entries,
  approvals: Entries,
  receipts: Entries,
  cost: Entries,
  awsRequestsAtLeast: z.looseObject({}),
  versions: z.looseObject({}),
  commits: z.array(CommitOutline),
});
export type DocumentOutline = z.infer<typeof DocumentOutline>;

/** What the outline does not check: the entries. The commits are most of a document, so they are checked once. */
export const DocumentEntries = z.object(
  EvidenceDocument.omit({ format: true, index: true, commits: true, head: true }).shape,
);
