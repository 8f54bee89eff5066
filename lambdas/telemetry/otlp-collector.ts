import { type AwsEnvironment, credentialsOf } from '../entry/environment.ts';
import { signedHeaders } from '../entry/sign-aws-request.ts';
import { CollectorFailed, type TraceCollector } from './export-traces.ts';
import { otlpBodies } from './otlp.ts';

/** Only X-Ray: a collector behind a load balancer or an API of AWS has a name of AWS, too, and gets its own headers. */
const XRAY_HOST = /^xray\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$/;
/** After these the request may be sent again, says OTLP/HTTP. After any other the spans are dropped. */
const RETRYABLE_STATUSES = [429, 502, 503, 504];
const TIMEOUT_MS = 2_000;

interface Collector {
  url: string;
  stage: string;
  aws: AwsEnvironment;
  /** Headers with the credential of a collector outside AWS. */
  headers?: () => Promise<Record<string, string>>;
}

/** Posts OTLP/HTTP. Requests to X-Ray, or to the endpoint that emulates AWS, are signed with the role of the function. */
export function otlpCollector({ url: given, stage, aws, headers }: Collector): TraceCollector {
  const { hostname, pathname, search } = new URL(given);
  const isXray = XRAY_HOST.test(hostname);
  const url = isXray && aws.AWS_ENDPOINT_URL ? new URL(pathname + search, aws.AWS_ENDPOINT_URL) : new URL(given);
  const signed = (body: string) =>
    signedHeaders({ service: 'xray', region: aws.AWS_REGION, credentials: credentialsOf(aws), url, body });
  return async (spans) => {
    for (const body of otlpBodies(stage, spans)) {
      const own = isXray ? await signed(body) : { 'content-type': 'application/json', ...(await headers?.()) };
      await post(url, own, body);
    }
  };
}

async function post(url: URL, headers: Record<string, string>, body: string): Promise<void> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  // The headers may have a credential, which is for this address only.
  const request = { method: 'POST', headers, body, signal, redirect: 'manual' } as const;
  const response = await fetch(url, request).catch((error: Error) => {
    throw new CollectorFailed(`the collector did not respond (${error.name})`, { retryable: true });
  });
  const text = await response.text().catch(() => '');
  if (!response.ok) {
    const reason = response.headers.get('x-amzn-errortype') ?? '';
    throw new CollectorFailed(`the collector refused the spans: ${response.status} ${reason}`.trim(), {
      retryable: RETRYABLE_STATUSES.includes(response.status),
      retryAfterMs: retryAfterMs(response),
    });
  }
  const rejected = rejectedSpans(text);
  if (rejected > 0) throw new CollectorFailed(`the collector rejected ${rejected} spans`, { retryable: false });
}

function retryAfterMs({ headers }: Response): number | undefined {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined;
}

/** `partialSuccess` of OTLP. A collector may also respond with an empty body. */
function rejectedSpans(text: string): number {
  try {
    return Number(JSON.parse(text).partialSuccess?.rejectedSpans ?? 0);
  } catch {
    return 0;
  }
}
