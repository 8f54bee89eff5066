import { expect, it } from 'vitest';
import { parseTraceparent, traceIdOf, validTraceparent } from '../../lambdas/telemetry/trace-context.ts';

const [TRACE, SPAN] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];
const RUN = { tenant: 'acme', runId: 'run_1' };

it.each([
  [`00-${TRACE}-${SPAN}-01`],
  [`00-${TRACE}-${SPAN}-00`],
  [`  00-${TRACE}-${SPAN}-01 `],
  [`cc-${TRACE}-${SPAN}-01`],
  [`cc-${TRACE}-${SPAN}-01-what-the-future-brings`],
])('a run joins the trace of a valid header: %s', (header) => {
  expect(parseTraceparent(header)).toEqual({ traceId: TRACE, spanId: SPAN });
  expect(validTraceparent(header)).toBe(`00-${TRACE}-${SPAN}-01`);
});

it.each([
  undefined,
  '',
  'nonsense',
  `00-${TRACE}-${SPAN}`,
  `00-${TRACE}-${SPAN}-01-more`,
  `00-${TRACE}-${SPAN}-1`,
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  `00-${'0'.repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `ff-${TRACE}-${SPAN}-01`,
  `00-${TRACE}-${SPAN}-01,00-${TRACE}-${SPAN}-01`,
  `00-${TRACE}-${SPAN}-01\n{"level":"ERROR"}`,
])('a malformed header is ignored: %j', (header) => {
  expect(validTraceparent(header)).toBeUndefined();
  expect(traceIdOf({ ...RUN, ...(header !== undefined && { traceparent: header }) })).toBe(traceIdOf(RUN));
});

it('without a header the trace is made from tenant and run', () => {
  expect(traceIdOf(RUN)).toMatch(/^[0-9a-f]{32}$/);
  expect(traceIdOf({ ...RUN, tenant: 'globex' })).not.toBe(traceIdOf(RUN));
  expect(traceIdOf({ ...RUN, traceparent: `00-${TRACE}-${SPAN}-01` })).toBe(TRACE);
});
