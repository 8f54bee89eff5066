import { type ApiKeys, apiKeyHash } from '../../lambdas/api/authorizer/api-keys.ts';
import type { Caller } from '../../lambdas/api/authorizer/caller.ts';
import type { ChangeAuthor } from '../../lambdas/pipeline/definition-changes.ts';
import { MemoryRows } from './memory-rows.ts';

export class MemoryApiKeys implements ApiKeys {
  readonly #callers = new MemoryRows<Caller>();

  async find(apiKey: string): Promise<Caller | undefined> {
    return this.#callers.get(apiKeyHash(apiKey));
  }

  async save(apiKey: string, caller: Caller, _by?: ChangeAuthor): Promise<void> {
    this.#callers.set(apiKeyHash(apiKey), '', caller);
  }
}
