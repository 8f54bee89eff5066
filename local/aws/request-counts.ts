/** Calls of one caller: service → operation → how many. */
type Counts = Record<string, Record<string, number>>;

export interface RequestReport {
  /** Calls made by functions; the host's own (seeding, tooling) are apart. */
  total: number;
  functions: Record<string, Counts>;
  services: Counts;
  host: Counts;
}

/** The caller's name under which the host's own calls are counted. */
export const HOST_CALLER = 'host';

/** How many AWS calls each function made: the figure that decides the bill, so tests hold it down. */
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
