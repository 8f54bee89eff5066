import type { EvidenceDocument } from '../../../lambdas/evidence/bundle/document.ts';
import type { HeldBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';

/** Random numbers that choose place and kind of the mutation. */
export type Dice = readonly [number, number, number];

/** The mutated bundle and, where it is certain, the entry that the verifier must name. */
export interface Mutated {
  bundle: HeldBundle;
  names?: string;
}

export type Mutation = (bundle: HeldBundle, other: HeldBundle, dice: Dice) => Mutated | Promise<Mutated>;

type List = 'commits' | 'receipts' | 'approvals' | 'steps' | 'decisions';
const LISTS: readonly List[] = ['commits', 'receipts', 'approvals', 'steps', 'decisions'];

const pick = <T>(list: readonly T[], die: number): T => list[die % list.length] as T;

function flipped(bytes: Buffer, [where, how]: Dice): Buffer {
  const copy = Buffer.from(bytes);
  const at = where % copy.length;
  copy[at] = (copy[at] ?? 0) ^ (1 + (how % 255));
  return copy;
}

type Parts = Record<string, unknown>;

const parsed = memoized((bundle: HeldBundle) => JSON.parse(bundle.document.toString()) as EvidenceDocument & Parts);
const textOf = memoized((part: object) => JSON.stringify(part));

/** Bundles and their parts are never changed, only replaced: so each is read and written once. */
function memoized<Of extends object, Made>(make: (of: Of) => Made): (of: Of) => Made {
  const made = new WeakMap<Of, { value: Made }>();
  return (of) => {
    const entry = made.get(of) ?? { value: make(of) };
    made.set(of, entry);
    return entry.value;
  };
}

/** The bundle with other parts in its document. What was canonical stays so: the order of keys does not change. */
function withParts(bundle: HeldBundle, parts: Parts): HeldBundle {
  const written = Object.entries(parts).map(([name, part]) => {
    const text = part !== null && typeof part === 'object' ? textOf(part) : JSON.stringify(part);
    return `${JSON.stringify(name)}:${text}`;
  });
  return { ...bundle, document: Buffer.from(`{${written.join(',')}}`) };
}

/** Changes a random list of entries. */
const inList = (change: (list: readonly unknown[], at: number, to: number, others: readonly unknown[]) => unknown[]) =>
  function mutateList(bundle: HeldBundle, other: HeldBundle, [which, at, to]: Dice): Mutated {
    const document = parsed(bundle);
    const filled = LISTS.filter((name) => document[name].length > 0);
    const name = pick(filled, which);
    const list: readonly unknown[] = document[name];
    const changed = change(list, at % list.length, to % list.length, parsed(other)[name]);
    return { bundle: withParts(bundle, { ...document, [name]: changed }) };
  };

type Path = readonly string[];

/** The path of every object and array in the document, and of the document itself. */
const containers = memoized((bundle: HeldBundle): Path[] => containersIn(parsed(bundle), []));

function containersIn(value: unknown, path: Path): Path[] {
  if (value === null || typeof value !== 'object') return [];
  return [path, ...Object.entries(value).flatMap(([key, each]) => containersIn(each, [...path, key]))];
}

/** Changes a random object or array. */
function inContainer(bundle: HeldBundle, die: number, change: (container: object) => object): HeldBundle {
  return withParts(bundle, changedAt(parsed(bundle), pick(containers(bundle), die), change) as Parts);
}

function changedAt(value: object, [key, ...rest]: Path, change: (container: object) => object): object {
  if (key === undefined) return change(value);
  const inner = changedAt((value as Record<string, object>)[key] as object, rest, change);
  return Array.isArray(value) ? value.with(Number(key), inner) : { ...value, [key]: inner };
}

const ONE_OF: Record<string, string> = {
  steps: 'step',
  receipts: 'receipt',
  approvals: 'approval',
  decisions: 'decision',
  commits: 'commit',
  cost: 'cost',
};

/** The name that the verifier has for the entry of a path. */
function entryAt([section, index]: Path): string {
  const one = ONE_OF[String(section)];
  return one && index !== undefined ? `${one} ${Number(index) + 1}` : String(section);
}

/** Changes one random value of the document; the verifier must name its entry. */
function editValue(bundle: HeldBundle, _other: HeldBundle, [where, which, how]: Dice): Mutated {
  const path = pick(containers(bundle), where);
  let names: string | undefined;
  const changed = inContainer(bundle, where, (container) => {
    const keys = Object.keys(container);
    if (keys.length === 0) return container;
    const key = pick(keys, which);
    // A commit with another number is in the position of another commit: the verifier names the position.
    if (path.length > 0 && key !== 'seq') names = entryAt([...path, key]);
    const value = edited((container as Record<string, unknown>)[key], how);
    return Array.isArray(container) ? container.with(Number(key), value) : { ...container, [key]: value };
  });
  return { bundle: changed, names };
}

function edited(value: unknown, how: number): unknown {
  if (typeof value === 'number') return value + 1 + (how % 5);
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'string') return how % 2 === 0 ? `${value}x` : `${value.slice(1)}${value === '' ? 'x' : ''}`;
  return pick([null, 0, '', [], {}], how);
}

function removeProperty(bundle: HeldBundle, _other: HeldBundle, [where, which]: Dice): Mutated {
  const changed = inContainer(bundle, where, (container) => {
    const keys = Object.keys(container);
    if (keys.length === 0 || Array.isArray(container)) return container;
    const { [pick(keys, which)]: _removed, ...rest } = container as Record<string, unknown>;
    return rest;
  });
  return { bundle: changed };
}

function addProperty(bundle: HeldBundle, _other: HeldBundle, [where, which]: Dice): Mutated {
  const changed = inContainer(bundle, where, (container) =>
    Array.isArray(container)
      ? [...container, pick([null, 'x', {}], which)]
      : { ...container, [pick(['note', 'Seq', '__proto__x'], which)]: 'x' },
  );
  return { bundle: changed };
}

function spliceSection(bundle: HeldBundle, other: HeldBundle, [where]: Dice): Mutated {
  const section = pick([...LISTS, 'run', 'trigger', 'index', 'head'] as const, where);
  return { bundle: withParts(bundle, { ...parsed(bundle), [section]: parsed(other)[section] }) };
}

/** Like an attacker who knows the format: another statement in canonical form, in an otherwise unchanged envelope. */
function editStatement(bundle: HeldBundle, _other: HeldBundle, [where, which, how]: Dice): Mutated {
  const envelope = JSON.parse(bundle.envelope.toString());
  const statement = JSON.parse(Buffer.from(envelope.payload, 'base64').toString());
  const place = pick([statement, statement.subject[0], statement.subject[0].digest, statement.predicate], where);
  const key = pick(Object.keys(place), which);
  place[key] = edited(place[key], how);
  envelope.payload = Buffer.from(JSON.stringify(statement)).toString('base64');
  return { bundle: { ...bundle, envelope: Buffer.from(JSON.stringify(envelope)) } };
}

function editSignature(bundle: HeldBundle, _other: HeldBundle, dice: Dice): Mutated {
  const envelope = JSON.parse(bundle.envelope.toString());
  const [signature] = envelope.signatures;
  signature.sig = flipped(Buffer.from(signature.sig, 'base64'), dice).toString('base64');
  return { bundle: { ...bundle, envelope: Buffer.from(JSON.stringify(envelope)) } };
}

/** Without a key. Each one changes the bundle, or leaves it unchanged for some random numbers. */
export const MUTATIONS: Record<string, Mutation> = {
  'a byte of the document is flipped': (bundle, _other, dice) => ({
    bundle: { ...bundle, document: flipped(bundle.document, dice) },
  }),
  'a byte of the envelope is flipped': (bundle, _other, dice) => ({
    bundle: { ...bundle, envelope: flipped(bundle.envelope, dice) },
  }),
  'the envelope is cut off': (bundle, _other, [where]) => ({
    bundle: { ...bundle, envelope: bundle.envelope.subarray(0, where % bundle.envelope.length) },
  }),
  'the signed statement is edited': editStatement,
  'a byte of the signature is flipped': editSignature,
  'bytes are cut out of the document': (bundle, _other, [where, length]) => {
    const from = where % bundle.document.length;
    const rest = bundle.document.subarray(from + 1 + (length % 200));
    return { bundle: { ...bundle, document: Buffer.concat([bundle.document.subarray(0, from), rest]) } };
  },
  'the document is cut off': (bundle, _other, [where]) => ({
    bundle: { ...bundle, document: bundle.document.subarray(0, where % bundle.document.length) },
  }),
  'an entry is dropped': inList((list, at) => list.toSpliced(at, 1)),
  'an entry is doubled': inList((list, at, to) => list.toSpliced(to, 0, list[at])),
  'two entries are swapped': inList((list, at, to) => list.with(at, list[to]).with(to, list[at])),
  'the end of a list is cut off': inList((list, at) => list.slice(0, at)),
  'an entry comes from another run': inList((list, at, _to, others) => list.with(at, others[at % others.length])),
  'a list comes from another run from here on': inList((list, at, _to, others) => [
    ...list.slice(0, at),
    ...others.slice(at),
  ]),
  'a section comes from another run': spliceSection,
  'a value is edited': editValue,
  'a property is removed': removeProperty,
  'a property is added': addProperty,
  'the envelope comes from another run': (bundle, other) => ({ bundle: { ...bundle, envelope: other.envelope } }),
  'the document comes from another run': (bundle, other) => ({ bundle: { ...bundle, document: other.document } }),
};
