import { createRequire } from 'node:module';

export type Cedar = typeof import('@cedar-policy/cedar-wasm/nodejs');

/** Parsed policy sets in the engine; the oldest is replaced first. A stage has at most 20 tenants. */
const PARSED_SETS_MAX = 32;
const SCHEMA_NAME = 'schema';

/** Loads a new engine instance: the module is removed from Node's cache. */
export function loadCedar(): Cedar {
  const requireFromHere = createRequire(import.meta.url);
  const module = requireFromHere.resolve('@cedar-policy/cedar-wasm/nodejs');
  delete requireFromHere.cache[module];
  return requireFromHere(module) as Cedar;
}

/** The engine with its parsed schema and policy sets, loaded on first use. */
export class CedarRuntime {
  readonly #load: () => Cedar;
  readonly #schema: () => string;
  readonly #slots = new Map<string, string>();
  #cedar: Cedar | undefined;

  constructor(load: () => Cedar, schema: () => string) {
    this.#load = load;
    this.#schema = schema;
  }

  /**
   * After an exception, WebAssembly is in an undefined state and fails every later call (a deeply nested policy exhausts the
   * stack). The instance is discarded, so that one tenant's policies cannot block other tenants.
   */
  use<T>(work: (cedar: Cedar) => T): T {
    try {
      this.#cedar ??= this.#start();
      return work(this.#cedar);
    } catch (error) {
      this.#cedar = undefined;
      this.#slots.clear();
      throw error;
    }
  }

  /** Asks a policy set one question. Parses the set first if necessary. */
  ask(
    set: { hash: string; policies: Record<string, string> },
    question: Pick<Parameters<Cedar['isAuthorized']>[0], 'principal' | 'action' | 'resource' | 'context' | 'entities'>,
  ): ReturnType<Cedar['isAuthorized']> {
    return this.use((cedar) =>
      cedar.statefulIsAuthorized({
        ...question,
        preparsedSchemaName: SCHEMA_NAME,
        validateRequest: true,
        preparsedPolicySetId: this.#slots.get(set.hash) ?? this.#parse(cedar, set),
      }),
    );
  }

  #start(): Cedar {
    const cedar = this.#load();
    assertParsed(cedar.preparseSchema(SCHEMA_NAME, this.#schema()));
    return cedar;
  }

  #parse(cedar: Cedar, { hash, policies }: { hash: string; policies: Record<string, string> }): string {
    const slot = this.#freeSlot();
    assertParsed(cedar.preparsePolicySet(slot, { staticPolicies: policies }));
    this.#slots.set(hash, slot);
    return slot;
  }

  #freeSlot(): string {
    if (this.#slots.size < PARSED_SETS_MAX) return `set-${this.#slots.size}`;
    const [[hash, slot] = ['', 'set-0']] = this.#slots;
    this.#slots.delete(hash);
    return slot;
  }
}

function assertParsed(answer: ReturnType<Cedar['preparseSchema']>): void {
  if (answer.type === 'failure') throw new Error(answer.errors.map(({ message }) => message).join('; '));
}
