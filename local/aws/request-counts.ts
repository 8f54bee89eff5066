/** Number of calls: service → operation → count. */
type Counts = Record<string, Record<string, number>>;

export interface RequestReport {
  /** Calls of functions. Calls of the host itself (seeding, tools) are in `host`. */
  total: number;
  functions: Record<string, Counts>;
  services: Counts;
  host: Counts;
}

const READS = ['GetItem', 'BatchGetItem', 'Query', 'TransactGetItems', 'Scan'];

/** The caller name of the host itself. */
export const HOST_CALLER = 'host';

/** Counts the AWS calls of each function. They determine the cost, so tests limit them. */
export class RequestCounts {
  #total = 0;
  #functions: Record<string, Counts> = {};
  #services: Counts = {};
  #host: Counts = {};
  #writes = 0;
  readonly #waiting = new Set<() => void>();

  count(functionLogicalId: string, service: string, operation: string): void {
    if (functionLogicalId === HOST_CALLER) {
      increment(this.#host, service, operation);
      return;
    }
    this.#total += 1;
    this.#functions[functionLogicalId] ??= {};
    increment(this.#functions[functionLogicalId], service, operation);
    increment(this.#services, service, operation);
  }

  /** Called after DynamoDB has executed a call of a function, so that a caller that is woken can already read the write. */
  executed(functionLogicalId: string, service: string, operation: string): void {
    if (functionLogicalId === HOST_CALLER || service !== 'dynamodb' || READS.includes(operation)) return;
    this.#writes += 1;
    for (const wake of this.#waiting) wake();
  }

  /** Number of DynamoDB writes of functions since the start. If it equals `known`, waits up to `waitMs` for another write. */
  async writesAfter(known: number, waitMs: number): Promise<number> {
    if (this.#writes === known) {
      const { promise: written, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, waitMs);
      this.#waiting.add(resolve);
      await written;
      clearTimeout(timer);
      this.#waiting.delete(resolve);
    }
    return this.#writes;
  }

  report(): RequestReport {
    return structuredClone({
      total: this.#total,
      functions: this.#functions,
      services: this.#services,
      host: this.#host,
    });
  }

  reset(): void {
    this.#total = 0;
    this.#functions = {};
    this.#services = {};
    this.#host = {};
  }
}

function increment(counts: Counts, service: string, operation: string): void {
  counts[service] ??= {};
  counts[service][operation] = (counts[service][operation] ?? 0) + 1;
}
