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

/** A value that only the run itself will know, and how a plan writes it: a text may be known but for a part of it. */
export class KnownAfterApply {
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
      return parts.some(holdsUnknown) ? new KnownAfterApply(shown) : shown;
    },
  });

/** As `wholeUrl`; what is not known yet is not encoded, since it is only shown. */
export function wholeUrlAsFarAsKnown(parts: readonly unknown[]): unknown {
  if (!parts.some(holdsUnknown)) return wholeUrl(parts);
  return new KnownAfterApply(parts.map((part) => asText(shownValue(part))).join(''));
}

async function evaluateKnown({ expressions, ...where }: Scope, all: string[]): Promise<unknown[]> {
  const isKnown = (source: string) => !looksAtUnknown(source, where.context);
  const sources = all.filter(isKnown);
  const values = sources.length > 0 ? await expressions.evaluate({ ...where, sources }) : [];
  const next = values.values();
  return all.map((source) => (isKnown(source) ? next.next().value : KNOWN_AFTER_APPLY));
}

const looksAtUnknown = (source: string, context: ExpressionContext): boolean =>
  planOf(source).references.some((reference) => valuesAt(context, reference).some(holdsUnknown));

/** What a reference leads to; through a list, it leads to that of each item. */
function valuesAt(value: unknown, [name, ...rest]: Reference): unknown[] {
  if (name === undefined || value instanceof KnownAfterApply) return [value];
  if (Array.isArray(value)) return value.flatMap((item) => valuesAt(item, [name, ...rest]));
  if (value === null || typeof value !== 'object') return [];
  return valuesAt((value as Record<string, unknown>)[name], rest);
}

export function holdsUnknown(value: unknown): boolean {
  if (value instanceof KnownAfterApply) return true;
  return value !== null && typeof value === 'object' && Object.values(value).some(holdsUnknown);
}

/** The value as a plan shows it: plain JSON. */
export function shownValue(value: unknown): unknown {
  if (value instanceof KnownAfterApply) return value.shown;
  if (Array.isArray(value)) return value.map(shownValue);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shownValue(each)]));
}
