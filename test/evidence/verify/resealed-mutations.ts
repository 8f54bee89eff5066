import { bundleClaim } from '../../../lambdas/evidence/bundle/bundle-claim.ts';
import { type EvidenceDocument, INDEXED_SECTIONS, type Index } from '../../../lambdas/evidence/bundle/document.ts';
import { DocumentTexts, indexOf } from '../../../lambdas/evidence/bundle/document-texts.ts';
import { signClaim } from '../../../lambdas/evidence/signing/dsse.ts';
import type { HeldBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { canonicalJson } from '../../../lambdas/run/canonical-json.ts';
import { later } from '../../../lambdas/run/lease.ts';
import { parsedDocument, SIGNER } from '../bundle/sealed-bundle.ts';
import type { Mutation } from './mutations.ts';

/** Fields that no commit proves (docs/evidence-format.md); all other fields of an entry are proved. */
const STAGES_WORD_ALONE = [
  /^run\.(workspace|subject|deadlineAt|writes|concurrencyKey)(\.|$)/,
  /^trigger\.payload\.(bytes|shape)/,
  /^steps\.\d+\.(input|output)\.(bytes|shape)/,
  /^steps\.\d+\.action\.(?!(tool|target)$)/,
  /^receipts\.\d+\.(effect|fields|before|reversal|response|error)(\.|$)/,
  /^receipts\.\d+\.output\.(bytes|shape)/,
  /^approvals\.\d+\.(message|before|after)(\.|$)/,
  /^approvals\.\d+\.action\.(?!(tool|target)$)/,
  /^approvals\.\d+\.votes\.\d+\.reason\.bytes$/,
  /^approvals\.\d+\.edits\.\d+\.changes\.\d+\.(from|to)\./,
  /^versions\.runtime$/,
];

type Place = readonly [holder: Record<string, unknown>, name: string, path: string];

/** Every value in the entries that the commits prove. */
function provedPlaces(document: EvidenceDocument): Place[] {
  const places = INDEXED_SECTIONS.flatMap((section) => placesIn(document, section, section));
  return places.filter(([, , path]) => !STAGES_WORD_ALONE.some((pattern) => pattern.test(path)));
}

function placesIn(holder: object, name: string, path: string): Place[] {
  const value = (holder as Record<string, unknown>)[name];
  if (value === null || typeof value !== 'object') return [[holder as Record<string, unknown>, name, path]];
  return Object.keys(value).flatMap((each) => placesIn(value, each, `${path}.${each}`));
}

/** Another value that the format allows there. */
function likely(value: unknown): unknown {
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  const text = String(value);
  if (/^\d{4}-\d\d-\d\dT.*Z$/.test(text)) return later(text, 1000);
  if (/^[0-9a-f]{64}$/.test(text)) return `${text.slice(0, -1)}${text.endsWith('0') ? '1' : '0'}`;
  return LIKELY[text] ?? `${text}x`;
}

const LIKELY: Record<string, string> = {
  failed_terminal: 'succeeded',
  rolled_back: 'succeeded',
  succeeded: 'failed_terminal',
  reversed: 'succeeded',
  failed: 'unknown',
  approve: 'reject',
  approved: 'rejected',
  policy: 'mode',
  medium: 'low',
  allow: 'deny',
};

/** Changes the entries like an owner of the stage's key: with a new index and envelope. */
const resealing =
  (change: (document: EvidenceDocument, dice: readonly [number, number, number]) => unknown): Mutation =>
  async (bundle, _other, dice) => {
    const document = parsedDocument(bundle);
    change(document, dice);
    return { bundle: await resealedAs(bundle, document) };
  };

export async function resealedAs(bundle: HeldBundle, document: EvidenceDocument): Promise<HeldBundle> {
  document.index = indexOf(new DocumentTexts(document));
  const bytes = Buffer.from(canonicalJson(document));
  if (bytes.equals(bundle.document)) return bundle;
  return { ...bundle, document: bytes, envelope: await signClaim(bundleClaim(bytes), SIGNER) };
}

type List = { [Name in keyof Index]: Index[Name] extends string[] ? Name : never }[keyof Index];
const LISTS: readonly List[] = ['steps', 'decisions', 'approvals', 'receipts', 'cost'];

/** Changes one of the lists of entries, each of them as likely as the others. */
const resealingList = (change: (list: unknown[], at: number, to: number) => unknown) =>
  resealing((document, [which, at, to]) => {
    const filled = LISTS.filter((name) => document[name].length > 0);
    const list: unknown[] = document[filled[which % filled.length] ?? 'steps'];
    change(list, at % list.length, to % list.length);
  });

/** Another run may have the key of such a write since, and the receipt is of that run. */
const mayBeMissing = (entry: unknown) => ['failed', 'reversed'].includes(String(Object(entry).outcome));

export const RESEALED_MUTATIONS: Record<string, Mutation> = {
  'a value is edited, and all of it signed again': resealing((document, [where]) => {
    const places = provedPlaces(document);
    const [holder, name] = places[where % places.length] ?? [];
    if (holder && name !== undefined) holder[name] = likely(holder[name]);
  }),
  'a value is left out, and all of it signed again': resealing((document, [where]) => {
    const places = provedPlaces(document).filter(([holder]) => !Array.isArray(holder));
    const [holder, name] = places[where % places.length] ?? [];
    if (holder && name !== undefined) delete holder[name];
  }),
  'an entry is dropped, and all of it signed again': resealingList((list, at) => {
    if (!mayBeMissing(list[at])) list.splice(at, 1);
  }),
  'an entry is doubled, and all of it signed again': resealingList((list, at, to) => list.splice(to, 0, list[at])),
  'two entries are swapped, and all of it signed again': resealingList((list, at, to) => {
    [list[at], list[to]] = [list[to], list[at]];
  }),
};

/** Each value that the commits prove, edited separately; by its path. */
export function* everyEdit(bundle: HeldBundle): Iterable<{ path: string; document: EvidenceDocument }> {
  const count = provedPlaces(parsedDocument(bundle)).length;
  for (let at = 0; at < count; at += 1) {
    const document = parsedDocument(bundle);
    const [holder, name, path] = provedPlaces(document)[at] ?? [];
    if (!holder || name === undefined || path === undefined) continue;
    holder[name] = likely(holder[name]);
    yield { path, document };
  }
}
