import { createHash } from 'node:crypto';
import type { Run } from '../run/run.ts';

/** The parent of a trace that began elsewhere: W3C trace context, version 00. */
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const ZEROS = /^0+$/;

export interface TraceParent {
  traceId: string;
  spanId: string;
}

/** Undefined unless the header is valid. Nothing else of a header is stored, so that nobody can put text into our logs. */
export function parseTraceparent(header: string | undefined): TraceParent | undefined {
  const [, traceId = '', spanId = ''] = TRACEPARENT.exec(header?.trim() ?? '') ?? [];
  return ZEROS.test(traceId) || ZEROS.test(spanId) || traceId === '' ? undefined : { traceId, spanId };
}

/** The header as it is stored; undefined unless it is valid. */
export const validTraceparent = (header: string | undefined): string | undefined =>
  parseTraceparent(header) && header?.trim();

type Traced = Pick<Run, 'tenant' | 'runId'> & { traceparent?: string };

/** The trace of the sender, or one made from the run. The same run always has the same trace. */
export const traceIdOf = ({ tenant, runId, traceparent }: Traced): string =>
  parseTraceparent(traceparent)?.traceId ?? hexOf(['trace', tenant, runId], 16);

/** A span has the same id whenever it is exported. `name` is unique in its run. */
export const spanIdOf = ({ tenant, runId }: Traced, name: string): string => hexOf(['span', tenant, runId, name], 8);

/** The header for a request of this span. */
export const traceparentOf = (run: Traced, spanName: string): string =>
  `00-${traceIdOf(run)}-${spanIdOf(run, spanName)}-01`;

function hexOf(parts: readonly string[], bytes: number): string {
  const hex = createHash('sha256')
    .update(JSON.stringify(parts))
    .digest('hex')
    .slice(0, 2 * bytes);
  // An id of zeros only is invalid.
  return ZEROS.test(hex) ? `${hex.slice(0, -1)}1` : hex;
}
