import { planOf } from '../workflow/expressions/expression-plan.ts';
import {
  asText,
  type ExpressionContext,
  renderWith,
  type Scope,
  type ValuesRequired,
} from '../workflow/expressions/expressions.ts';
import type { Reference } from '../workflow/expressions/references.ts';
import { wholeUrl } from '../workflow/url-template.ts';

/** A value that only the run itself will know, and how a plan shows it. A text may be partly known. */
class KnownAfterApply {
  readonly shown: string;
  constructor(shown: string) {
    this.shown = shown;
  }
}

export const KNOWN_AFTER_APPLY = new KnownAfterApply('(known after apply)');

/** As `render`, but everything that depends on an unknown value is unknown too, instead of wrong. */
export const renderKnown = (scope: Scope, template: unknown, required?: ValuesRequired): Promise<unknown> =>
  renderWith(template, required ?? 'nowhere', {
    evaluate: (sources) => evaluateKnown(scope, sources),
    join(parts) {
      const shown = parts.map((part) => asText(shownValue(part))).join('');
      return parts.some(containsUnknown) ? new KnownAfterApply(shown) : shown;
    },
  });

/** As `wholeUrl`, but unknown values are not encoded, because a plan only shows them. */
export function wholeUrlAsFarAsKnown(parts: readonly unknown[]): unknown {
  if (!parts.some(containsUnknown)) return wholeUrl(parts);
  return new KnownAfterApply(parts.map((part) => asText(shownValue(part))).join(''));
}

async function evaluateKnown({ expressions, ...where }: Scope, all: string[]): Promise<unknown[]> {
  const isKnown = (source: string) => !readsUnknown(source, where.context);
  const sources = all.filter(isKnown);
  const values = sources.length > 0 ? await expressions.evaluate({ ...where, sources }) : [];
  const next = values.values();
  return all.map((source) => (isKnown(source) ? next.next().value : KNOWN_AFTER_APPLY));
}

const readsUnknown = (source: string, context: ExpressionContext): boolean =>
  planOf(source).references.some((reference) => valuesAt(context, reference).some(containsUnknown));

/** The values that a reference refers to; through a list, those of each item. */
function valuesAt(value: unknown, [name, ...rest]: Reference): unknown[] {
  if (name === undefined || value instanceof KnownAfterApply) return [value];
  if (Array.isArray(value)) return value.flatMap((item) => valuesAt(item, [name, ...rest]));
  if (value === null || typeof value !== 'object') return [];
  return valuesAt((value as Record<string, unknown>)[name], rest);
}

export function containsUnknown(value: unknown): boolean {
  if (value instanceof KnownAfterApply) return true;
  return value !== null && typeof value === 'object' && Object.values(value).some(containsUnknown);
}

/** The value as a plan shows it: plain JSON. */
export function shownValue(value: unknown): unknown {
  if (value instanceof KnownAfterApply) return value.shown;
  if (Array.isArray(value)) return value.map(shownValue);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shownValue(each)]));
}
