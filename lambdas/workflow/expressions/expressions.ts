import { CountersignError } from '../../run/errors.ts';
import { readTemplate } from './template.ts';

/** What an expression can see. Nothing else is in reach: no environment, no network, no other run. */
export interface ExpressionContext {
  trigger: Record<string, unknown>;
  enrichment?: unknown;
  steps?: Record<string, { output: unknown }>;
  run?: { id: unknown };
}

export interface Evaluation {
  /** Whose expressions they are: one tenant's do not keep another's waiting. */
  tenant: string;
  sources: readonly string[];
  context: ExpressionContext;
  budget?: Budget;
}

/** Shared by several evaluations: the time they have left together, which each reduces by what it took, and the most for one. */
export interface Budget {
  leftMs: number;
  eachMs: number;
}

/** Evaluates JSONata within limits of time and memory. */
export interface Expressions {
  /** The values of these expressions, in their order; the first that fails fails all. */
  evaluate(evaluation: Evaluation): Promise<unknown[]>;
}

/** What expressions of one place in a workflow are evaluated with. */
export interface Scope extends Pick<Evaluation, 'tenant' | 'context' | 'budget'> {
  expressions: Expressions;
}

/** Replaces every `{% expression %}` in a JSON value: a string that is one expression becomes its value. */
export const render = ({ expressions, ...where }: Scope, template: unknown): Promise<unknown> =>
  renderWith(template, {
    evaluate: (sources) => expressions.evaluate({ ...where, sources }),
    join: (parts) => parts.map(asText).join(''),
  });

/** How expressions become values, and words with values between them a text. */
export interface Rendering {
  evaluate(sources: string[]): Promise<unknown[]>;
  join(parts: unknown[]): unknown;
}

export async function renderWith(template: unknown, { evaluate, join }: Rendering): Promise<unknown> {
  const sources: string[] = [];
  const filledIn = prepare(template, sources, join);
  return filledIn(sources.length > 0 ? await evaluate(sources) : []);
}

type FilledIn = (values: readonly unknown[]) => unknown;

/** Collects the expressions of a template; what it gives puts their values into their places. */
function prepare(template: unknown, sources: string[], join: Rendering['join']): FilledIn {
  const valueFrom = (source: string): FilledIn => {
    const place = sources.push(source) - 1;
    return (values) => values[place];
  };
  if (typeof template === 'string') {
    const written = readTemplate(template);
    if ('whole' in written) return valueFrom(written.whole);
    const parts = written.parts.map((part) => (typeof part === 'string' ? () => part : valueFrom(part.expression)));
    return (values) => join(parts.map((part) => part(values)));
  }
  if (Array.isArray(template)) {
    const items = template.map((item) => prepare(item, sources, join));
    return (values) => items.map((item) => item(values));
  }
  if (template === null || typeof template !== 'object') return () => template;
  const entries = Object.entries(template).map(([name, value]) => [name, prepare(value, sources, join)] as const);
  return (values) => Object.fromEntries(entries.map(([name, value]) => [name, value(values)]));
}

export function asText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Of a condition: what is not there is no; anything else that is neither yes nor no was meant as something else. */
export function conditionHolds(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value === 'boolean') return value;
  throw new CountersignError('EXPRESSION_FAILED', '`when` gave neither true nor false; compare with something');
}
