import { hash, randomBytes } from 'node:crypto';

/**
 * Lambda's recursive loop detection. Every invocation has a trace header. The SDK sends it with every request of the function,
 * SQS stores it with the message, and its lineage shows how many times each function was invoked in this chain.
 * `Root=1-…;Lineage=1a2b3c4d:3|5e6f7a8b:1`
 */
export const TRACE_HEADER = 'x-amzn-trace-id';

/** The maximum for one function, unless it has `RecursiveLoop: Allow`. */
export const INVOCATIONS_IN_A_CHAIN_MAX = 16;

const names = new Map<string, string>();

function nameInLineage(functionArn: string): string {
  const name = names.get(functionArn) ?? hash('sha256', functionArn, 'hex').slice(0, 8);
  names.set(functionArn, name);
  return name;
}

function lineageOf(traceHeader: string | undefined): Map<string, number> {
  const [, lineage] = /(?:^|;)Lineage=([^;]+)/.exec(traceHeader ?? '') ?? [];
  const counts = (lineage ?? '').split('|').flatMap((part): [string, number][] => {
    const [name, count] = part.split(':');
    return name && count ? [[name, Number(count)]] : [];
  });
  return new Map(counts);
}

/** Adds an invocation of this function to the chain. Returns the new trace header and the count for this function. */
export function oneMoreInvocation(functionArn: string, traceHeader: string | undefined) {
  const [, root] = /(?:^|;)Root=([^;]+)/.exec(traceHeader ?? '') ?? [];
  const lineage = lineageOf(traceHeader);
  const name = nameInLineage(functionArn);
  const count = (lineage.get(name) ?? 0) + 1;
  lineage.set(name, count);
  const written = [...lineage].map(([each, times]) => `${each}:${times}`).join('|');
  return { count, traceHeader: `Root=${root ?? `1-${randomBytes(12).toString('hex')}`};Lineage=${written}` };
}

/** The longest chain of several messages. */
export function longestChain(traceHeaders: readonly (string | null)[]): string | undefined {
  const length = (header: string) => Math.max(0, ...lineageOf(header).values());
  return traceHeaders.flatMap((header) => header ?? []).sort((a, b) => length(b) - length(a))[0];
}
