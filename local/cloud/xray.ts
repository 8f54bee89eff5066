import * as z from 'zod';
import { AwsError } from '../aws/aws.ts';
import type { RestService } from '../aws/aws-calls.ts';
import type { WireReply, WireRequest } from '../aws/wire.ts';
import type { AccessCheck } from '../iam/access-checks.ts';

const TRACES_PATH = '/v1/traces';
/** Of AWS: 10,000 spans and 5 MB in a request. */
const SPANS_MAX = 10_000;
const BODY_MAX_BYTES = 5 * 1024 * 1024;
/** The oldest ones are forgotten. */
const REQUESTS_STORED = 200;

const Id = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`));
const Nanoseconds = z.string().regex(/^\d{19}$/);
const Span = z.looseObject({
  traceId: Id(16),
  spanId: Id(8),
  parentSpanId: Id(8).optional(),
  name: z.string().min(1),
  startTimeUnixNano: Nanoseconds,
  endTimeUnixNano: Nanoseconds,
});
const TracesRequest = z.object({
  resourceSpans: z.array(z.looseObject({ scopeSpans: z.array(z.looseObject({ spans: z.array(Span) })) })),
});
export type TracesRequest = z.infer<typeof TracesRequest>;

const spansIn = ({ resourceSpans }: TracesRequest) =>
  resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));

/** X-Ray's OTLP endpoint: stores what it gets, for `/_local/traces`. */
export class LocalXray implements RestService {
  #requests: TracesRequest[] = [];

  describe({ path }: WireRequest): { operation: string; checks: AccessCheck[] } {
    if (path !== TRACES_PATH) return { operation: 'Unknown', checks: [] };
    return { operation: 'ExportTraces', checks: [{ action: 'xray:PutTraceSegments', resource: '*' }] };
  }

  async handle({ path, body }: WireRequest): Promise<WireReply> {
    if (path !== TRACES_PATH)
      throw new AwsError('UnknownOperationException', `The local X-Ray has only ${TRACES_PATH}.`);
    if (body.length > BODY_MAX_BYTES) throw new AwsError('InvalidRequestException', 'more than 5 MB');
    const parsed = TracesRequest.safeParse(JSON.parse(body.toString()));
    if (!parsed.success) throw new AwsError('InvalidRequestException', z.prettifyError(parsed.error));
    if (spansIn(parsed.data).length > SPANS_MAX)
      throw new AwsError('InvalidRequestException', `more than ${SPANS_MAX} spans`);
    this.#requests = [...this.#requests, parsed.data].slice(-REQUESTS_STORED);
    return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from('{}') };
  }

  /** The requests, newest last; with an id, those that have spans of this trace. */
  report(traceId: string | null): { requests: TracesRequest[] } {
    const isWanted = (request: TracesRequest) =>
      traceId === null || spansIn(request).some((span) => span.traceId === traceId);
    return { requests: this.#requests.filter(isWanted) };
  }
}
