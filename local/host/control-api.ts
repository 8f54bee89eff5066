import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import * as z from 'zod';
import { REGION } from '../aws/aws.ts';
import { HOST_CREDENTIALS } from '../aws/aws-endpoint.ts';
import { BadFaultRule, type Faults } from '../aws/faults.ts';
import type { RequestCounts } from '../aws/request-counts.ts';
import type { LocalBedrock } from '../cloud/bedrock.ts';
import type { LocalCloudWatch } from '../cloud/cloudwatch/cloudwatch.ts';
import type { LocalXray } from '../cloud/xray.ts';
import type { Iam } from '../iam/iam.ts';
import type { Functions } from '../lambda/functions.ts';
import type { ResolvedStack } from '../template/template.ts';
import type { HostClock } from './clock.ts';
import { SAMPLES, SampleRequest, sendSample } from './samples.ts';

const BODY_MAX_BYTES = 64 * 1024;
/** How long a request waits for a write, or until the host is idle. */
const WAIT_MAX_MS = 10_000;
const IDLE_CHECKED_EVERY_MS = 10;

const Advance = z.strictObject({
  /** How far to advance the clock. The values are added. */
  advanceMs: z.number().nonnegative().optional(),
  advanceSeconds: z.number().nonnegative().optional(),
  advanceMinutes: z.number().nonnegative().optional(),
});

interface ControlOptions {
  clock: HostClock;
  faults: Faults;
  requests: RequestCounts;
  iam: Iam;
  functions: Functions;
  stack: ResolvedStack;
  hostUrl: string;
  awsEndpointUrl: string;
  bedrock: LocalBedrock;
  cloudWatch: LocalCloudWatch;
  xray: LocalXray;
  sweep(): Promise<void>;
  /** No message waits to be received and no function works. */
  isIdle(): boolean;
}

/** The control API under `/_local/`, for tests and tools. It does what is not possible in AWS. */
export class ControlApi {
  readonly #routes: Record<string, (body: unknown, query: URLSearchParams) => unknown>;

  constructor({
    clock,
    faults,
    requests,
    iam,
    functions,
    stack,
    hostUrl,
    awsEndpointUrl,
    bedrock,
    cloudWatch,
    xray,
    sweep,
    isIdle,
  }: ControlOptions) {
    const now = () => ({ now: new Date(clock.now()).toISOString() });
    this.#routes = {
      'GET /_local/requests': () => requests.report(),
      'DELETE /_local/requests': () => {
        requests.reset();
        return requests.report();
      },
      'GET /_local/writes': async (_body, query) => {
        const known = Number(query.get('after') ?? -1);
        const ofAtMost = (name: string) => Math.min(Number(query.get(name)), WAIT_MAX_MS);
        await requests.writesAfter(known, ofAtMost('waitMs'));
        await becomesIdle(isIdle, ofAtMost('idleWithinMs'));
        // Counted last: a write while it waited is known to who asks for the rows now.
        return { writes: await requests.writesAfter(-1, 0) };
      },
      'GET /_local/idle': async () => ({ idle: await becomesIdle(isIdle, WAIT_MAX_MS) }),
      'GET /_local/metrics': () => ({ metrics: functions.metrics() }),
      'GET /_local/alarms': () => cloudWatch.alarms(),
      'GET /_local/dashboard': () => new Svg(cloudWatch.dashboard()),
      'GET /_local/functions': () => functions.stats(),
      'GET /_local/grants/unused': () => ({ unused: iam.unusedGrants() }),
      'GET /_local/outputs': () => stack.outputs,
      'GET /_local/aws': () => ({ endpoint: awsEndpointUrl, region: REGION, credentials: HOST_CREDENTIALS }),
      'GET /_local/faults': () => ({ faults: faults.list() }),
      'POST /_local/faults': (body) => faults.add(body),
      'DELETE /_local/faults': () => {
        faults.clear();
        return { faults: [] };
      },
      'GET /_local/traces': (_body, query) => xray.report(query.get('trace')),
      'GET /_local/models': () => bedrock.report(),
      'POST /_local/models': (body) => bedrock.script(body),
      'DELETE /_local/models': () => bedrock.forget(),
      'GET /_local/samples': () => ({ samples: SAMPLES }),
      'POST /_local/samples': (body) => sendSample(hostUrl, SampleRequest.parse(body), clock.now()),
      'GET /_local/clock': now,
      'POST /_local/clock': (body) => {
        const { advanceMs = 0, advanceSeconds = 0, advanceMinutes = 0 } = Advance.parse(body);
        clock.advance(advanceMs + advanceSeconds * 1000 + advanceMinutes * 60_000);
        return now();
      },
      'POST /_local/sweep': async () => {
        await sweep();
        return { swept: true };
      },
    };
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const action = this.#routes[`${request.method} ${pathname}`];
    if (!action)
      return send(response, 404, { error: `no such path; there are: ${Object.keys(this.#routes).join(', ')}` });
    try {
      const result = await action(await readJson(request), searchParams);
      if (!(result instanceof Svg)) return send(response, 200, result);
      response.writeHead(200, { 'content-type': 'image/svg+xml' }).end(result.text);
      return;
    } catch (error) {
      if (error instanceof z.ZodError) return send(response, 400, { error: z.prettifyError(error) });
      if (error instanceof BadFaultRule || error instanceof SyntaxError) {
        return send(response, 400, { error: error.message });
      }
      throw error;
    }
  }
}

/** Asked twice, with time between for a message that is on its way from a queue to a function. */
async function becomesIdle(isIdle: () => boolean, withinMs: number): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < withinMs; waitedMs += IDLE_CHECKED_EVERY_MS) {
    if (isIdle()) {
      await delay(1);
      if (isIdle()) return true;
    }
    await delay(IDLE_CHECKED_EVERY_MS);
  }
  return false;
}

/** An image, for browsers. */
class Svg {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of request) {
    text += chunk;
    if (text.length > BODY_MAX_BYTES) throw new SyntaxError(`the body has more than ${BODY_MAX_BYTES} bytes`);
  }
  return text === '' ? {} : JSON.parse(text);
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body, null, 2)}\n`);
}
