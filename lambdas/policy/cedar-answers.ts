import type { cedarQuestion } from './cedar-request.ts';

type Question = ReturnType<typeof cedarQuestion>;

const ANSWERS_MAX = 1_000;
/** A longer question has values in full and is hardly asked twice. */
const KEY_MAX_CHARACTERS = 2_000;

/**
 * Answers of one policy set. Most policies read few attributes of the context, and a run asks about several writes that differ in
 * others only: their target, values and time. The engine needs half a millisecond for each question, mostly to read it.
 */
export class CedarAnswers<Answer> {
  readonly #read: ReadonlySet<string> | undefined;
  readonly #answers = new Map<string, Answer>();

  /** `read`: the attributes of the context that the policies read; undefined if that is not known. */
  constructor(read: ReadonlySet<string> | undefined) {
    this.#read = read;
  }

  answer(question: Question, ask: () => Answer): Answer {
    const key = this.#read && decisiveParts(question, this.#read);
    if (key === undefined || key.length > KEY_MAX_CHARACTERS) return ask();
    const known = this.#answers.get(key);
    if (known !== undefined) return known;
    const answer = ask();
    const [oldest] = this.#answers.keys();
    if (oldest !== undefined && this.#answers.size >= ANSWERS_MAX) this.#answers.delete(oldest);
    this.#answers.set(key, answer);
    return answer;
  }
}

/**
 * Everything that the answer depends on. Of an attribute that no policy reads, that is its type: the engine refuses a question that does
 * not match the schema.
 */
function decisiveParts({ context, ...others }: Question, read: ReadonlySet<string>): string {
  const attributes = Object.entries(context).map(([name, value]) => [name, read.has(name) ? value : typeOf(value)]);
  return JSON.stringify([others, attributes]);
}

function typeOf(value: unknown): unknown {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? 'text' : 'malformed text';
    case 'number':
      return Number.isSafeInteger(value) ? 'whole number' : String(value);
    case 'object':
      break;
    default:
      return typeof value;
  }
  if (value === null) return value;
  if (Array.isArray(value)) return ['set', ...new Set(value.map((element) => JSON.stringify(typeOf(element))))].sort();
  // Levels and kinds are entities that the schema enumerates.
  if ('__entity' in value) return value;
  // Always a time in ISO format.
  if ('__extn' in value) return JSON.stringify(value).length;
  return ['record', ...Object.entries(value).map(([name, each]) => [name, typeOf(each)])];
}

/** The attributes of the context that a policy reads, from its JSON form; undefined if it uses the context in another way. */
export function readAttributes(policy: unknown): string[] | undefined {
  if (typeof policy !== 'object' || policy === null) return [];
  // A record of a policy may have a field of this name, whose value is an expression.
  if ('Var' in policy && typeof policy.Var === 'string') return policy.Var === 'context' ? undefined : [];
  const inner = Object.entries(policy).map(([operator, operand]) => {
    const attribute = ATTRIBUTE_OPERATORS.includes(operator) ? attributeOfContext(operand) : undefined;
    return attribute === undefined ? readAttributes(operand) : [attribute];
  });
  return inner.includes(undefined) ? undefined : inner.flatMap((names) => names ?? []);
}

/** `context.undo` and `context has undo`. */
const ATTRIBUTE_OPERATORS = ['.', 'has'];

/** `context has command.check` has a list of names, of which the first is the attribute. */
function attributeOfContext(operand: unknown): string | undefined {
  const { left, attr } = operand as { left?: { Var?: unknown }; attr?: string | string[] };
  return left?.Var === 'context' ? [attr].flat()[0] : undefined;
}
