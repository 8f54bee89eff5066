import type { RequestReport } from '../local/aws/request-counts.ts';

/** The same report for some of the functions. */
export function onlyOf(report: RequestReport, counts: (name: string) => boolean): RequestReport {
  const functions = Object.fromEntries(Object.entries(report.functions).filter(([name]) => counts(name)));
  const services: RequestReport['services'] = {};
  for (const each of Object.values(functions)) {
    for (const [service, operations] of Object.entries(each)) {
      const all = services[service] ?? {};
      services[service] = all;
      for (const [operation, count] of Object.entries(operations)) all[operation] = (all[operation] ?? 0) + count;
    }
  }
  return { ...report, functions, services };
}

/** By service and operation, for some of the functions and services. */
export function sum(
  report: RequestReport,
  counts: (functionName: string, service: string) => boolean,
): Record<string, number> {
  const found: Record<string, number> = {};
  for (const [name, services] of Object.entries(report.functions)) {
    for (const [service, operations] of Object.entries(services)) {
      if (!counts(name, service)) continue;
      for (const [operation, count] of Object.entries(operations)) {
        const key = `${service}.${operation}`;
        found[key] = (found[key] ?? 0) + count;
      }
    }
  }
  return found;
}

export const total = (counts: Record<string, number>): number => Object.values(counts).reduce((a, b) => a + b, 0);
