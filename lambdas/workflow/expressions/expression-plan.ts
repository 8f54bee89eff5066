import { directEvaluation } from './direct-evaluation.ts';
import { limitExceeded } from './evaluate.ts';
import type { ExpressionContext } from './expressions.ts';
import { syntaxTree, tooLarge } from './jsonata-syntax.ts';
import { type Reference, referencesOf } from './references.ts';

export interface ExpressionPlan {
  direct: ReturnType<typeof directEvaluation>;
  /** Only these parts of the context are sent to the process. */
  references: Reference[];
}

/** Longer expressions are not cached. */
const CACHED_MAX_CHARACTERS = 1_000;
const CACHED_MAX = 2_000;
const cache = new Map<string, ExpressionPlan>();

/** An invalid expression gets the plan UNREADABLE; its evaluation reports the problem. */
export function planOf(source: string): ExpressionPlan {
  const large = tooLarge(source);
  if (large !== undefined) throw limitExceeded(source, large);
  const known = cache.get(source);
  if (known) return known;
  const plan = read(source);
  if (cache.size >= CACHED_MAX) cache.clear();
  if (source.length <= CACHED_MAX_CHARACTERS) cache.set(source, plan);
  return plan;
}

/** It may read anything. */
const UNREADABLE: ExpressionPlan = { direct: undefined, references: [[]] };

function read(source: string): ExpressionPlan {
  try {
    const tree = syntaxTree(source);
    return { direct: directEvaluation(tree), references: referencesOf(tree) };
  } catch {
    return UNREADABLE;
  }
}

/** Limit for one evaluation. */
export const CONTEXT_MAX_CHARACTERS = 2 * 1024 * 1024;

/** The parts of the context that these expressions read, as JSON; undefined if they exceed the limit. */
export function contextFor(references: readonly Reference[], context: ExpressionContext): string | undefined {
  const { steps = {}, ...others } = context;
  const everything = references.some(([root]) => root === undefined);
  const allSteps = everything || references.some(([root, step]) => root === 'steps' && step === undefined);
  const isRead = (root: string) => everything || references.some(([name]) => name === root);
  const isReadStep = (id: string) => allSteps || references.some(([root, step]) => root === 'steps' && step === id);

  let characters = 0;
  // Part by part, so that an excess is found before everything is converted.
  const written = (entries: [string, unknown][]): string =>
    `{${entries
      .flatMap(([name, value]) => {
        const text = characters > CONTEXT_MAX_CHARACTERS ? undefined : JSON.stringify(value);
        characters += text?.length ?? 0;
        return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
      })
      .join(',')}}`;
  const stepsText = written(Object.entries(steps).filter(([id]) => isReadStep(id)));
  const othersText = written(Object.entries(others).filter(([name]) => isRead(name)));
  if (characters > CONTEXT_MAX_CHARACTERS) return undefined;
  const withSteps = context.steps !== undefined && (everything || references.some(([root]) => root === 'steps'));
  if (!withSteps) return othersText;
  return othersText === '{}' ? `{"steps":${stepsText}}` : `${othersText.slice(0, -1)},"steps":${stepsText}}`;
}
