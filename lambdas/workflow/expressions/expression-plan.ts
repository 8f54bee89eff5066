import { directEvaluation } from './direct-evaluation.ts';
import { limitExceeded } from './evaluate.ts';
import type { ExpressionContext } from './expressions.ts';
import { syntaxTree, tooLarge } from './jsonata-syntax.ts';
import { type Reference, referencesOf } from './references.ts';

/** How an expression is evaluated, found out once. */
export interface ExpressionPlan {
  direct: ReturnType<typeof directEvaluation>;
  /** What it looks at: nothing else of the context is handed to the process. */
  references: Reference[];
}

/** Of these there may be many; longer ones are read each time. */
const REMEMBERED_MAX_CHARACTERS = 1_000;
const REMEMBERED_MAX = 2_000;
const remembered = new Map<string, ExpressionPlan>();

/** What cannot be read has no plan; evaluating it says why. */
export function planOf(source: string): ExpressionPlan {
  const large = tooLarge(source);
  if (large !== undefined) throw limitExceeded(source, large);
  const known = remembered.get(source);
  if (known) return known;
  const plan = read(source);
  if (remembered.size >= REMEMBERED_MAX) remembered.clear();
  if (source.length <= REMEMBERED_MAX_CHARACTERS) remembered.set(source, plan);
  return plan;
}

/** It may look at anything. */
const UNREADABLE: ExpressionPlan = { direct: undefined, references: [[]] };

function read(source: string): ExpressionPlan {
  try {
    const tree = syntaxTree(source);
    return { direct: directEvaluation(tree), references: referencesOf(tree) };
  } catch {
    return UNREADABLE;
  }
}

/** All that one evaluation may look at. */
export const CONTEXT_MAX_CHARACTERS = 2 * 1024 * 1024;

/** The part of the context that these expressions look at, as JSON; nothing if that is too much. */
export function contextFor(references: readonly Reference[], context: ExpressionContext): string | undefined {
  const { steps = {}, ...others } = context;
  const everything = references.some(([root]) => root === undefined);
  const allSteps = everything || references.some(([root, step]) => root === 'steps' && step === undefined);
  const isRead = (root: string) => everything || references.some(([name]) => name === root);
  const isReadStep = (id: string) => allSteps || references.some(([root, step]) => root === 'steps' && step === id);

  let characters = 0;
  // Part by part, so that what is too much is found before all of it is written.
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
