/** The conditions of policy statements that the template uses. An unknown operator or key never allows a call. */

export type ConditionContext = Record<string, string | string[]>;
export interface Condition {
  operator: string;
  key: string;
  wanted: string[];
}

type ConditionResult = { matches: true } | { matches: false; reason: string; unknown: boolean };

/** In AWS every call uses TLS. Here the loopback interface replaces it. */
const EVERY_REQUEST: ConditionContext = { 'aws:SecureTransport': 'true' };

/** Keys that a request can have. */
const KNOWN_KEYS = ['aws:SecureTransport', 'dynamodb:LeadingKeys', 's3:if-none-match'];

/** `actual` is undefined if the request does not have the key. */
const OPERATORS: Record<string, (actual: string[] | undefined, wanted: string[]) => boolean> = {
  Bool: (actual, [wanted]) => actual !== undefined && actual[0] === wanted,
  Null: (actual, [wanted]) => (actual === undefined) === (wanted === 'true'),
  // As in AWS, this is true if the request does not have the key. So such a grant also allows requests without the key.
  'ForAllValues:StringLike': (actual = [], wanted) =>
    actual.every((value) => wanted.some((pattern) => wildcardMatches(pattern, value))),
};

/** The `Condition` of a statement: operator → key → one or more values. */
export function parseConditions(block: unknown): Condition[] {
  const operators = Object.entries((block ?? {}) as Record<string, Record<string, unknown>>);
  return operators.flatMap(([operator, keys]) =>
    Object.entries(keys).map(([key, wanted]) => ({ operator, key, wanted: [wanted].flat().map(String) })),
  );
}

const MATCHES: ConditionResult = { matches: true };

export function evaluateConditions(conditions: Condition[], context: ConditionContext): ConditionResult {
  for (const each of conditions) {
    const result = evaluateOne(each, context[each.key] ?? EVERY_REQUEST[each.key]);
    if (!result.matches) return result;
  }
  return MATCHES;
}

function evaluateOne({ operator, key, wanted }: Condition, value: string | string[] | undefined): ConditionResult {
  const unknown = (what: string): ConditionResult => ({
    matches: false,
    reason: `the local host does not support the condition ${what}`,
    unknown: true,
  });
  if (!KNOWN_KEYS.includes(key)) return unknown(`key ${key}`);
  const matches = OPERATORS[operator];
  if (!matches) return unknown(`operator ${operator}`);
  const actual = typeof value === 'string' ? [value] : value;
  if (matches(actual, wanted)) return MATCHES;
  const had = actual === undefined ? 'the request does not have it' : `the request has ${actual.join(', ')}`;
  return { matches: false, reason: `${operator} ${key} requires ${wanted.join(', ')}; ${had}`, unknown: false };
}

const compiled = new Map<string, RegExp>();

/** `*` is any text and `?` any one character; everything else is literal. */
export function wildcardMatches(pattern: string, text: string, flags: '' | 'i' = ''): boolean {
  if (pattern === '*') return true;
  const cacheKey = flags + pattern;
  let regex = compiled.get(cacheKey);
  if (!regex) {
    const source = pattern
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.');
    regex = new RegExp(`^${source}$`, `s${flags}`);
    compiled.set(cacheKey, regex);
  }
  return regex.test(text);
}

/** Compares ARNs part by part: a wildcard does not match across the first five colons. */
export function arnLike(actual: string, pattern: string): boolean {
  const [actualParts, patternParts] = [arnParts(actual), arnParts(pattern)];
  return patternParts.every((part, index) => wildcardMatches(part, actualParts[index] ?? ''));
}

function arnParts(arn: string): string[] {
  const parts = arn.split(':');
  return [...parts.slice(0, 5), parts.slice(5).join(':')];
}
