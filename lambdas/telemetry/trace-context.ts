import { sha256Hex } from '../run/canonical-json.ts';
import type { Run } from '../run/run.ts';

/** The header `traceparent` of W3C Trace Context. A version after 00 may have more fields, which are ignored. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const ZEROS = /^0+$/;
/** The sender of this header records its spans. */
const SAMPLED = '01';

export interface TraceParent {
  traceId: string;
  spanId: string;
}

/** Undefined unless the header is valid. Nothing else of a header is stored, so that nobody can put text into our logs. */
export function parseTraceparent(header: string | undefined): TraceParent | undefined {
  const [, version, traceId = '0', spanId = '0', , further] = TRACEPARENT.exec(header?.trim() ?? '') ?? [];
  if (ZEROS.test(traceId) || ZEROS.test(spanId) || (version === '00' && further !== undefined)) return undefined;
  return { traceId, spanId };
}

/** The header as it is stored; undefined unless it is valid. */
export function validTraceparent(header: string | undefined): string | undefined {
  const parsed = parseTraceparent(header);
  return parsed && headerOf(parsed);
}

type Traced = Pick<Run, 'tenant' | 'runId'> & { traceparent?: string };

/** The trace of the sender, or one made from the run. The same run always has the same trace. */
export const traceIdOf = ({ tenant, runId, traceparent }: Traced): string =>
  parseTraceparent(traceparent)?.traceId ?? hexOf(['trace', tenant, runId], 16);

/** A span has the same id whenever it is exported. `name` is unique in its run. */
export const spanIdOf = ({ tenant, runId }: Traced, name: string): string => hexOf(['span', tenant, runId, name], 8);

/** The names of spans that requests carry before the spans are exported. */
export const RUN_SPAN = 'run';
export const sessionSpan = (index: number): string => `agent.session ${index}`;
export const stepSpan = (index: number): string => `step.execute ${index}`;
export const attemptSpan = (index: number, leaseVersion: number): string => `step.attempt ${index}.${leaseVersion}`;

/** The header for a request of this span. */
export const traceparentOf = (run: Traced, spanName: string): string =>
  headerOf({ traceId: traceIdOf(run), spanId: spanIdOf(run, spanName) });

const headerOf = ({ traceId, spanId }: TraceParent): string => `00-${traceId}-${spanId}-${SAMPLED}`;

function hexOf(parts: readonly string[], bytes: number): string {
  const hex = sha256Hex(JSON.stringify(parts)).slice(0, 2 * bytes);
  // An id of zeros only is invalid.
  return ZEROS.test(hex) ? `${hex.slice(0, -1)}1` : hex;
}
