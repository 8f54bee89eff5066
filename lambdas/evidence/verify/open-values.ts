import type { ProposedAction } from '../../policy/policy.ts';
import { digestOf, requestHash as hashOfRequest, textDigest } from '../../run/digest.ts';
import type { EvidenceDocument } from '../bundle/document.ts';

/** The values behind the digests of a bundle, as the artifacts of its run have them. */
export interface EvidenceValues {
  tenant: string;
  runId: string;
  [section: string]: unknown;
}

interface Opened {
  /** `steps[2].input` */
  path: string;
  value: unknown;
}

export interface OpenedValues {
  /** Values with the digest of the bundle. */
  proven: Opened[];
  /** Paths of values that are not those of the bundle. */
  different: string[];
  /** Paths of digests without a value here. */
  missing: string[];
}

/** The sections that are lists, and the name of each of their entries. Lists in entries are in the same order. */
const LISTS = { steps: 'index', approvals: 'approvalId', receipts: 'key', commits: 'seq' } as const;

/** Compares each value with its digest. The values are in the same sections, under the same names. */
export function openValues(document: EvidenceDocument, values: EvidenceValues): OpenedValues {
  const opened: OpenedValues = { proven: [], different: [], missing: [] };
  compare(document.run, values.run, 'run', opened);
  compare(document.trigger, values.trigger, 'trigger', opened);
  for (const [section, name] of Object.entries(LISTS)) {
    const list = Array.isArray(values[section]) ? values[section] : [];
    const byName = new Map(list.map((each) => [Object(each)[name], each]));
    for (const entry of document[section as keyof typeof LISTS]) {
      const id = (entry as Record<string, unknown>)[name];
      compare(entry, byName.get(id), `${section}[${id}]`, opened);
    }
  }
  compareWrites(document, values, opened);
  return opened;
}

function compare(node: unknown, value: unknown, path: string, opened: OpenedValues): void {
  if (node === null || typeof node !== 'object') return;
  if (isDigest(node)) {
    if (value === undefined) opened.missing.push(path);
    else if (hasDigest(value, node.sha256)) opened.proven.push({ path, value });
    else opened.different.push(path);
    return;
  }
  if (Array.isArray(node)) {
    const list = Array.isArray(value) ? value : [];
    for (const [place, each] of node.entries()) compare(each, list[place], `${path}[${place}]`, opened);
    return;
  }
  for (const [name, each] of Object.entries(node)) {
    compare(each, Object(value)[name], `${path}.${name}`, opened);
  }
}

const isDigest = (node: object): node is { sha256: string; bytes: number } =>
  'sha256' in node && typeof node.sha256 === 'string' && 'bytes' in node;

/** Sentences have the digest of their text, all other values that of their canonical form. */
const hasDigest = (value: unknown, sha256: string): boolean =>
  digestOf(value).sha256 === sha256 || (typeof value === 'string' && textDigest(value).sha256 === sha256);

interface StepValues {
  index?: number;
  action?: ProposedAction;
}

/** The hash of what was sent is made of all written values, in a salted run of their salted digests. */
function compareWrites(document: EvidenceDocument, values: EvidenceValues, opened: OpenedValues): void {
  const steps = (Array.isArray(values.steps) ? values.steps : []) as StepValues[];
  const { salt } = Object(values.run) as { salt?: unknown };
  const isSalted = document.commits.some(({ events }) =>
    events.some(({ type, salted }) => type === 'run.enriched' && salted === true),
  );
  for (const { index, requestHash, runId, key } of document.receipts) {
    const fields = steps.find((each) => each.index === index)?.action?.fields;
    // This run did not send a write of another run that it reused.
    if (!fields || runId !== document.run.runId) continue;
    const path = `receipts[${key}].requestHash`;
    if (isSalted && typeof salt !== 'string') opened.missing.push(path);
    else if (requestHash === hashOfRequest(fields, isSalted ? String(salt) : undefined))
      opened.proven.push({ path, value: fields });
    else opened.different.push(path);
  }
}
