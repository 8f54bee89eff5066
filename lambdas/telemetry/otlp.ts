import type { Span } from './spans.ts';

/** X-Ray's limits of one request: 10,000 spans, 5 MB, 24 hours from the first span to the last. */
const SPANS_MAX = 5_000;
const RANGE_MAX_MS = 23 * 60 * 60 * 1000;

const KIND = { internal: 1, server: 2, client: 3 } as const satisfies Record<Span['kind'], number>;
const STATUS_ERROR = 2;

/** The bodies of the requests that export the spans: OTLP/HTTP with JSON, one for almost every run. */
export function otlpBodies(stage: string, spans: readonly Span[]): string[] {
  const batches: Span[][] = [];
  for (const span of [...spans].sort((a, b) => a.fromMs - b.fromMs)) {
    const batch = batches.at(-1);
    const first = batch?.[0];
    if (batch && first && batch.length < SPANS_MAX && span.fromMs - first.fromMs < RANGE_MAX_MS) batch.push(span);
    else batches.push([span]);
  }
  return batches.map((batch) =>
    JSON.stringify({
      resourceSpans: [
        {
          resource: {
            attributes: attributesOf({ 'service.name': 'countersign', 'deployment.environment.name': stage }),
          },
          scopeSpans: [{ scope: { name: 'countersign' }, spans: batch.map(otlpSpan) }],
        },
      ],
    }),
  );
}

const otlpSpan = ({ traceId, spanId, parentSpanId, name, kind, fromMs, toMs, attributes, error }: Span) => ({
  traceId,
  spanId,
  ...(parentSpanId !== undefined && { parentSpanId }),
  name,
  kind: KIND[kind],
  startTimeUnixNano: nanoseconds(fromMs),
  endTimeUnixNano: nanoseconds(toMs),
  attributes: attributesOf(attributes),
  status: error === undefined ? {} : { code: STATUS_ERROR, message: error },
});

const nanoseconds = (ms: number): string => `${Math.round(ms)}000000`;

const attributesOf = (attributes: Span['attributes']) =>
  Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }));

function anyValue(value: string | number | boolean) {
  if (typeof value === 'string') return { stringValue: value };
  return typeof value === 'boolean' ? { boolValue: value } : { intValue: String(value) };
}
