import { type SyntaxNode, syntaxTree } from './jsonata-syntax.ts';
import { type Reference, referencesOf } from './references.ts';
import { readTemplate } from './template.ts';

/**
 * How a value derives from a model. `carried`: it may contain text of the model. `chosen`: the model only selects between
 * other values, or the relation is only known at run time.
 */
export interface Derived {
  how: 'carried' | 'chosen';
  /** The steps that call the model. */
  from: readonly string[];
}

/** How the value of a reference derives from a model; undefined if it does not. */
export type Origin = (reference: Reference) => Derived | undefined;

export function combined(parts: readonly (Derived | undefined)[]): Derived | undefined {
  const derived = parts.filter((part) => part !== undefined);
  if (derived.length === 0) return undefined;
  const how = derived.some((part) => part.how === 'carried') ? 'carried' : 'chosen';
  return { how, from: [...new Set(derived.flatMap(({ from }) => from))].sort() };
}

export const asChoice = (derived: Derived | undefined): Derived | undefined => derived && { ...derived, how: 'chosen' };

/** For the part of a template at `path`. Lists add no element to the path. */
export function derivedTemplate(template: unknown, origin: Origin, path: Reference = []): Derived | undefined {
  if (typeof template === 'string') return derivedText(template, origin);
  if (Array.isArray(template)) return combined(template.map((item) => derivedTemplate(item, origin, path)));
  if (template === null || typeof template !== 'object') return undefined;
  const [name, ...rest] = path;
  if (name === undefined) return combined(Object.values(template).map((value) => derivedTemplate(value, origin)));
  return Object.hasOwn(template, name)
    ? derivedTemplate((template as Record<string, unknown>)[name], origin, rest)
    : undefined;
}

function derivedText(text: string, origin: Origin): Derived | undefined {
  const parsed = readTemplate(text);
  const sources = 'whole' in parsed ? [parsed.whole] : parsed.parts.flatMap((part) => asSource(part) ?? []);
  return combined(sources.map((source) => derivedExpression(source, origin)));
}

const asSource = (part: string | { expression: string }) => (typeof part === 'string' ? undefined : part.expression);

function derivedExpression(source: string, origin: Origin): Derived | undefined {
  let tree: unknown;
  try {
    tree = syntaxTree(source);
  } catch {
    // Not JSONata: publishing reports it, and it has no value.
    return undefined;
  }
  return new Analysis(tree, origin).of(tree, true);
}

/** Operators with a boolean result. */
const COMPARING = new Set(['=', '!=', '<', '<=', '>', '>=', 'in', 'and', 'or']);
/** Functions with a boolean result. */
const TESTING = new Set(['contains', 'exists', 'boolean', 'not']);

/** Analyses one expression. A part counts as `carried` unless it is known to only choose. */
class Analysis {
  readonly #origin: Origin;
  /** All values that each variable may have. */
  readonly #variables = new Map<unknown, Derived>();

  constructor(tree: unknown, origin: Origin) {
    this.#origin = origin;
    const bindings = nodesIn(tree).filter(({ type }) => type === 'bind');
    // A variable may refer to another one: repeat until nothing changes.
    for (let before = -1; before !== this.#size(); ) {
      before = this.#size();
      for (const { lhs, rhs } of bindings) this.#assign((lhs as SyntaxNode).value, this.#named(rhs, true));
    }
  }

  of(part: unknown, atRoot: boolean): Derived | undefined {
    const node = (part ?? {}) as SyntaxNode;
    if (node.predicate !== undefined) {
      const filters = asChoice(this.#named(node.predicate, false));
      return combined([this.of({ ...node, predicate: undefined }, atRoot), filters]);
    }
    const each = (child: unknown) => this.of(child, atRoot);
    switch (node.type) {
      case 'condition':
        return combined([asChoice(this.#named(node.condition, atRoot)), each(node.then), each(node.else)]);
      case 'binary':
        return COMPARING.has(String(node.value))
          ? asChoice(this.#named(node, atRoot))
          : combined([each(node.lhs), each(node.rhs)]);
      case 'unary':
        return this.#constructed(node, atRoot);
      case 'block':
        return each((node.expressions as unknown[]).at(-1));
      case 'bind':
        return each(node.rhs);
      case 'function':
        return this.#called(node, atRoot);
      case 'path':
        return this.#path(node, atRoot);
      default:
        return this.#named(node, atRoot);
    }
  }

  /** A list or an object. */
  #constructed(node: SyntaxNode, atRoot: boolean): Derived | undefined {
    if (node.group !== undefined) return this.#named(node, atRoot);
    if (node.value === '[') return combined((node.expressions as unknown[]).map((part) => this.of(part, atRoot)));
    if (node.value === '{') return combined((node.lhs as unknown[][]).flat().map((part) => this.of(part, atRoot)));
    return this.#named(node, atRoot);
  }

  #called(node: SyntaxNode, atRoot: boolean): Derived | undefined {
    const { type, value } = node.procedure as SyntaxNode;
    const name = String(value);
    const isOurs = type !== 'variable' || this.#isAssigned(name);
    const all = this.#named(node, atRoot);
    if (isOurs || all === undefined) return all;
    if (TESTING.has(name)) return asChoice(all);
    const [map, key] = node.arguments as unknown[];
    return name === 'lookup' ? combined([this.of(map, atRoot), asChoice(this.#named(key, atRoot))]) : all;
  }

  /** Filters and sort terms of a path only choose between its values. */
  #path(node: SyntaxNode, atRoot: boolean): Derived | undefined {
    const steps = node.steps ?? [];
    const choosing = steps.flatMap((step) => [step.stages, step.predicate, step.type === 'sort' ? step.terms : []]);
    const bare = steps.map((step) => ({
      ...step,
      // Empty filters remain: a path is followed up to its first filter.
      ...(step.stages !== undefined && { stages: [] }),
      ...(step.predicate !== undefined && { predicate: [] }),
      ...(step.type === 'sort' && { terms: [] }),
    }));
    const [only, ...more] = bare;
    const alone = only && more.length === 0 && only.type !== 'name' && node.group === undefined;
    const leadsTo = alone
      ? this.of({ ...only, stages: undefined, predicate: undefined }, atRoot)
      : this.#named({ ...node, steps: bare }, atRoot);
    return combined([leadsTo, asChoice(this.#named(choosing, false))]);
  }

  /** All references and variables in a part of the expression. */
  #named(part: unknown, atRoot: boolean): Derived | undefined {
    const references = referencesOf(part, atRoot).map((reference) => this.#origin(reference));
    const variables = nodesIn(part).map(({ type, value }) =>
      type === 'variable' ? this.#variables.get(value) : undefined,
    );
    return combined([...references, ...variables]);
  }

  #assign(name: unknown, value: Derived | undefined): void {
    const now = combined([this.#variables.get(name), value]);
    if (now) this.#variables.set(name, now);
    this.#assigned.add(name);
  }

  readonly #assigned = new Set<unknown>();
  #isAssigned = (name: string) => this.#assigned.has(name);

  #size(): number {
    return [...this.#variables.values()].reduce(
      (sum, { how, from }) => sum + from.length + (how === 'carried' ? 1 : 0),
      0,
    );
  }
}

function nodesIn(part: unknown, found: SyntaxNode[] = []): SyntaxNode[] {
  if (part === null || typeof part !== 'object') return found;
  if (!Array.isArray(part)) found.push(part as SyntaxNode);
  for (const child of Object.values(part)) nodesIn(child, found);
  return found;
}
