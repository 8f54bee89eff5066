/** The filter patterns of event source mappings. An unsupported operator stops the start. */

type Rule = string | number | boolean | null | Record<string, unknown>;
export interface Pattern {
  [field: string]: Rule[] | Pattern;
}

const OPERATORS: Record<string, (value: unknown, operand: unknown) => boolean> = {
  prefix: (value, operand) => typeof value === 'string' && value.startsWith(String(operand)),
  suffix: (value, operand) => typeof value === 'string' && value.endsWith(String(operand)),
  'equals-ignore-case': (value, operand) =>
    typeof value === 'string' && value.toLowerCase() === String(operand).toLowerCase(),
  exists: (value, operand) => (value !== undefined) === operand,
  'anything-but': (value, operand) => value !== undefined && ![operand].flat().includes(value),
};

/** Parses the patterns of a `FilterCriteria`. Without any, every record passes. */
export function parseFilters(criteria: unknown, where: string): Pattern[] {
  const { Filters = [] } = (criteria ?? {}) as { Filters?: { Pattern: string }[] };
  return Filters.map(({ Pattern: text }) => {
    const pattern = JSON.parse(text) as Pattern;
    refuseUnsupported(pattern, where);
    return pattern;
  });
}

/** A record passes if it matches one pattern. */
export const passes = (patterns: readonly Pattern[], record: unknown): boolean =>
  patterns.length === 0 || patterns.some((pattern) => matches(pattern, record));

/** Every field of the pattern must match: one of its rules, or the pattern within it. */
function matches(pattern: Pattern, value: unknown): boolean {
  for (const field in pattern) {
    const expected = pattern[field] ?? [];
    const actual = (value as Record<string, unknown> | null | undefined)?.[field];
    const isMatch = Array.isArray(expected)
      ? expected.some((rule) => ruleMatches(rule, actual))
      : matches(expected, actual);
    if (!isMatch) return false;
  }
  return true;
}

function ruleMatches(rule: Rule, value: unknown): boolean {
  if (typeof rule !== 'object' || rule === null) return value === rule;
  return Object.entries(rule).every(([operator, operand]) => OPERATORS[operator]?.(value, operand) ?? false);
}

function refuseUnsupported(pattern: Pattern, where: string): void {
  for (const expected of Object.values(pattern)) {
    if (!Array.isArray(expected)) {
      refuseUnsupported(expected, where);
      continue;
    }
    for (const rule of expected) {
      if (typeof rule !== 'object' || rule === null) continue;
      const unknown = Object.keys(rule).find((operator) => !(operator in OPERATORS));
      if (unknown) throw new Error(`${where}: the local host does not support the filter operator ${unknown}`);
    }
  }
}
