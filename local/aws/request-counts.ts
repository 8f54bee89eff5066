/** Number of calls: service → operation → count. */
type Counts = Record<string, Record<string, number>>;

export interface RequestReport {
  /** Calls of functions. Calls of the host itself (seeding, tools) are in `host`. */
  total: number;
  functions: Record<string, Counts>;
  services: Counts;
  host: Counts;
}

/** The caller name of the host itself. */
export const HOST_CALLER = 'host';

/** Counts the AWS calls of each function. They determine the cost, so tests limit them. */
export class RequestCounts {
  #total = 0;
  #functions: Record<string, Counts> = {};
  #services: Counts = {};
  #host: Counts = {};

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
