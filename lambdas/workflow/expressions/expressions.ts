import { CountersignError } from '../../run/errors.ts';
import { readTemplate } from './template.ts';

/** The values that an expression can read. It has no access to the environment, the network or other runs. */
export interface ExpressionContext {
  trigger: Record<string, unknown>;
  enrichment?: unknown;
  inputs?: Record<string, unknown>;
  /** In a step with `forEach`. */
  item?: unknown;
  index?: number;
  steps?: Record<string, { output: unknown }>;
  run?: { id: unknown };
}

export interface Evaluation {
  /** Tenants take turns. */
  tenant: string;
  sources: readonly string[];
  context: ExpressionContext;
  budget?: Budget;
}

/** Shared by several evaluations. Each evaluation takes at most `eachMs`, and reduces `leftMs`. */
export interface Budget {
  leftMs: number;
  eachMs: number;
}

/** Evaluates JSONata within limits of time and memory. */
export interface Expressions {
  /** Returns the values in order. Rejects if one expression fails. */
  evaluate(evaluation: Evaluation): Promise<unknown[]>;
}

export interface Scope extends Pick<Evaluation, 'tenant' | 'context' | 'budget'> {
  expressions: Expressions;
}

/**
 * Where an expression must have a value: `nowhere`, `in_text` (as a part of a text, where nothing would be written in its
 * place), or `everywhere`.
 */
export type ValuesRequired = 'nowhere' | 'in_text' | 'everywhere';

/** Replaces every `{% expression %}` in a JSON value: a string that is one expression becomes its value. */
export const render = (
  { expressions, ...where }: Scope,
  template: unknown,
  required: ValuesRequired = 'nowhere',
): Promise<unknown> =>
  renderWith(template, required, {
    evaluate: (sources) => expressions.evaluate({ ...where, sources }),
    join: (parts) => parts.map(asText).join(''),
  });

/** `join` combines constant text and values to one text. */
export interface Rendering {
  evaluate(sources: string[]): Promise<unknown[]>;
  join(parts: unknown[]): unknown;
}

export async function renderWith(
  template: unknown,
  required: ValuesRequired,
  { evaluate, join }: Rendering,
): Promise<unknown> {
  const sources: string[] = [];
  const fill = prepare(template, { sources, required, join });
  return fill(sources.length > 0 ? await evaluate(sources) : []);
}

type Fill = (values: readonly unknown[]) => unknown;

/** Collects the expressions of a template and returns a function that inserts their values. */
function prepare(
  template: unknown,
  into: Pick<Rendering, 'join'> & { sources: string[]; required: ValuesRequired },
): Fill {
  const { sources, required, join } = into;
  const valueFrom = (source: string, isPart: boolean): Fill => {
    const index = sources.push(source) - 1;
    const mustExist = required === 'everywhere' || (required === 'in_text' && isPart);
    return (values) => {
      const value = values[index];
      if (mustExist && (value === undefined || value === null)) throw missingValue(source);
      return value;
    };
  };
  if (typeof template === 'string') {
    const parsed = readTemplate(template);
    if ('whole' in parsed) return valueFrom(parsed.whole, false);
    const parts = parsed.parts.map((part) =>
      typeof part === 'string' ? () => part : valueFrom(part.expression, true),
    );
    return (values) => join(parts.map((part) => part(values)));
  }
  if (Array.isArray(template)) {
    const items = template.map((item) => prepare(item, into));
    return (values) => items.map((item) => item(values));
  }
  if (template === null || typeof template !== 'object') return () => template;
  const entries = Object.entries(template).map(([name, value]) => [name, prepare(value, into)] as const);
  return (values) => Object.fromEntries(entries.map(([name, value]) => [name, value(values)]));
}

const SHOWN_MAX_CHARACTERS = 200;

function missingValue(source: string): CountersignError {
  const shown = source.length > SHOWN_MAX_CHARACTERS ? `${source.slice(0, SHOWN_MAX_CHARACTERS)}…` : source;
  const message = `{% ${shown} %} has no value; correct it, or give a default: {% (…) ?: 'default' %}`;
  return new CountersignError('MISSING_VALUE', message);
}

export function asText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A missing value is false. Values other than true and false are mistakes. */
export function conditionHolds(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value === 'boolean') return value;
  throw new CountersignError(
    'EXPRESSION_FAILED',
    '`when` must be true or false; compare the value, for example {% trigger.priority = "1" %}',
  );
}
