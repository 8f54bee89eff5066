/** The condition block of a policy statement, evaluated as IAM does, except that what we do not know never matches. */

export type ConditionContext = Record<string, string | string[]>;
export type ConditionBlock = Record<string, Record<string, unknown>>;

export type ConditionResult = { matches: true } | { matches: false; reason: string; unknown: boolean };

/** Keys some request can carry. One that is known but absent from this request follows IAM's rules for absent keys. */
const KNOWN_KEYS = new Set(
  [
    'aws:PrincipalArn',
    'aws:PrincipalAccount',
    'aws:RequestedRegion',
    'aws:ResourceAccount',
    'aws:SecureTransport',
    'aws:SourceAccount',
    'aws:SourceArn',
    'dynamodb:Attributes',
    'dynamodb:EnclosingOperation',
    'dynamodb:LeadingKeys',
    'dynamodb:ReturnValues',
    'dynamodb:Select',
    'kms:MessageType',
    'kms:RequestAlias',
    'kms:SigningAlgorithm',
    's3:if-none-match',
    's3:object-lock-mode',
    's3:prefix',
    's3:delimiter',
    'secretsmanager:SecretId',
    'secretsmanager:VersionStage',
  ].map((key) => key.toLowerCase()),
);

type Compare = (actual: string, wanted: string) => boolean;

const COMPARISONS: Record<string, { compare: Compare; negated?: true }> = {
  StringEquals: { compare: (actual, wanted) => actual === wanted },
  StringNotEquals: { compare: (actual, wanted) => actual === wanted, negated: true },
  StringEqualsIgnoreCase: { compare: (actual, wanted) => actual.toLowerCase() === wanted.toLowerCase() },
  StringLike: { compare: (actual, wanted) => wildcardMatches(wanted, actual) },
  StringNotLike: { compare: (actual, wanted) => wildcardMatches(wanted, actual), negated: true },
  ArnEquals: { compare: arnLike },
  ArnLike: { compare: arnLike },
  Bool: { compare: (actual, wanted) => actual.toLowerCase() === wanted.toLowerCase() },
};

export function evaluateConditions(block: ConditionBlock, context: ConditionContext): ConditionResult {
  const lowerCased = new Map(Object.entries(context).map(([key, value]) => [key.toLowerCase(), [value].flat()]));
  for (const [operator, keys] of Object.entries(block)) {
    for (const [key, wanted] of Object.entries(keys)) {
      const result = evaluateOne(operator, key, [wanted].flat().map(String), lowerCased.get(key.toLowerCase()));
      if (!result.matches) return result;
    }
  }
  return { matches: true };
}

function evaluateOne(operator: string, key: string, wanted: string[], actual: string[] | undefined): ConditionResult {
  const [, quantifier, name = '', ifExists] =
    /^(?:(ForAllValues|ForAnyValue):)?(\w+?)(IfExists)?$/.exec(operator) ?? [];
  const unknown = (reason: string): ConditionResult => ({ matches: false, reason, unknown: true });
  if (!KNOWN_KEYS.has(key.toLowerCase())) return unknown(`the condition key ${key} is not known to the local host`);
  if (name === 'Null') return verdict((actual === undefined) === (wanted[0] === 'true'), operator, key, wanted, actual);
  const comparison = COMPARISONS[name];
  if (!comparison) return unknown(`the condition operator ${operator} is not known to the local host`);
  const holds = (value: string) =>
    wanted.some((each) => comparison.compare(value, each)) !== (comparison.negated === true);
  // An absent key satisfies ForAllValues and negated operators in AWS too: a grant that relies on it is wider than it looks.
  const absent = ifExists !== undefined || quantifier === 'ForAllValues' || comparison.negated === true;
  if (actual === undefined || actual.length === 0) return verdict(absent, operator, key, wanted, actual);
  return verdict(
    quantifier === 'ForAnyValue' ? actual.some(holds) : actual.every(holds),
    operator,
    key,
    wanted,
    actual,
  );
}

function verdict(
  matches: boolean,
  operator: string,
  key: string,
  wanted: string[],
  actual: string[] | undefined,
): ConditionResult {
  if (matches) return { matches: true };
  const had = actual === undefined ? 'the request has none' : `the request has ${actual.join(', ')}`;
  return { matches: false, reason: `${operator} ${key} wants ${wanted.join(', ')}; ${had}`, unknown: false };
}

const compiled = new Map<string, RegExp>();

/** `*` is any text, `?` any one character; everything else is literal. */
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

/** In the Arn operators a wildcard does not reach across the first five colons. */
export function arnLike(actual: string, pattern: string): boolean {
  const [actualParts, patternParts] = [arnParts(actual), arnParts(pattern)];
  return patternParts.every((part, index) => wildcardMatches(part, actualParts[index] ?? ''));
}

function arnParts(arn: string): string[] {
  const parts = arn.split(':');
  return [...parts.slice(0, 5), parts.slice(5).join(':')];
}
