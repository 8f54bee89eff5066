import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { DynamoDb } from '../dynamodb/dynamodb.ts';
import { listenOnLoopback, refuseForeign } from '../host/loopback-requests.ts';
import type { AccessCheck } from '../iam/access-checks.ts';
import type { Iam } from '../iam/iam.ts';
import type { ResolvedStack } from '../template/template.ts';
import { AwsError } from './aws.ts';
import { type AwsCall, describeCall, type Services } from './aws-calls.ts';
import { type FaultRule, type Faults, faultReply } from './faults.ts';
import type { Answer } from './passed-requests.ts';
import { HOST_CALLER, type RequestCounts } from './request-counts.ts';
import { credentialOf, errorReply, readRequest, send, type WireReply, type WireRequest } from './wire.ts';

export interface Caller {
  functionLogicalId: string;
  roleLogicalId: string;
}

interface AwsEndpointOptions {
  /** 0, the default, is any free port. */
  port?: number;
  stack: ResolvedStack;
  iam: Iam;
  requests: RequestCounts;
  faults: Faults;
  dynamodb: Pick<DynamoDb, 'serve'>;
  services: Services;
  /** By access key id. Every function thread has its own. */
  callers: Map<string, Caller>;
  /** Ends the thread with this access key. Resolves when it has ended. */
  crash(functionLogicalId: string, accessKeyId: string): Promise<void> | void;
  /** Called after each call that was executed or refused, with its reply. */
  observe?: ObserveCall | undefined;
  log?(line: string): void;
}

export type ObserveCall = (
  call: Pick<AwsCall, 'service' | 'operation' | 'input'> & { functionLogicalId: string },
  reply: WireReply,
) => void;

interface AwsEndpoint {
  url: string;
  /** Serves a request that did not come over the port. */
  serve(wire: WireRequest, answer: Answer): void;
  stop(): Promise<void>;
}

/** The credentials of the host itself, for seeding and tools. No role restricts it, and its calls are counted separately. */
export const HOST_CREDENTIALS = { accessKeyId: 'LOCALHOST', secretAccessKey: 'local' };

/** The endpoint of all AWS services, for the functions and the host. */
export async function startAwsEndpoint(options: AwsEndpointOptions): Promise<AwsEndpoint> {
  const handler = new CallHandler(options);
  const failed = (error: unknown, answer: Answer) => {
    options.log?.(`AWS endpoint: ${error instanceof Error ? error.stack : String(error)}`);
    answer.lose();
  };
  const serve = (wire: WireRequest, answer: Answer) => {
    handler.serve(wire, answer).catch((error: unknown) => failed(error, answer));
  };
  const server = createServer({ noDelay: true }, (request, response) => {
    if (refuseForeign(request, response)) return;
    const answer = { send: (reply: WireReply) => send(response, reply), lose: () => void response.destroy() };
    readRequest(request).then(
      (wire) => serve(wire, answer),
      (error: unknown) => failed(error, answer),
    );
  });
  return { serve, ...(await listenOnLoopback(server, options.port)) };
}

type KnownCaller = { accessKeyId: string; functionLogicalId: string; roleLogicalId?: string };

class CallHandler {
  readonly #options: AwsEndpointOptions;

  constructor(options: AwsEndpointOptions) {
    this.#options = options;
  }

  /** identify → count → fault before → IAM → execute → fault after → reply */
  async serve(wire: WireRequest, answer: Answer): Promise<void> {
    const credential = credentialOf(wire);
    const service = credential?.service ?? 'unknown';
    const caller = this.#identify(credential?.accessKeyId);
    if (!caller) return answer.send(unrecognized(service, credential?.accessKeyId));
    const call = describeCall(service, wire, this.#options);
    if ('refusal' in call) return answer.send(call.refusal);

    this.#options.requests.count(caller.functionLogicalId, service, call.operation);
    const resources = () => call.checks().flatMap(({ resource }) => resource);
    const faultable = { ...caller, service, operation: call.operation, resources };
    const { delayMs, rule } = this.#options.faults.forCall(faultable);
    if (delayMs > 0) await delay(delayMs);
    if (rule?.kind === 'crash_before') return this.#crash(caller, answer);
    const injected = rule && faultReply(rule, call);
    if (injected) return answer.send(injected);

    const reply = await this.#authorizeAndExecute(caller, call);
    this.#options.requests.executed(caller.functionLogicalId, service, call.operation);
    this.#options.observe?.({ ...call, functionLogicalId: caller.functionLogicalId }, reply);
    await this.#reply(reply, rule, caller, answer);
  }

  async #reply(reply: WireReply, rule: FaultRule | undefined, caller: KnownCaller, answer: Answer) {
    if (rule?.kind === 'crash_after') return this.#crash(caller, answer);
    if (rule?.kind === 'lost_reply') return answer.lose();
    answer.send(reply);
  }

  #identify(accessKeyId: string | undefined): KnownCaller | undefined {
    if (accessKeyId === undefined) return undefined;
    if (accessKeyId === HOST_CREDENTIALS.accessKeyId) return { accessKeyId, functionLogicalId: HOST_CALLER };
    const caller = this.#options.callers.get(accessKeyId);
    return caller && { accessKeyId, ...caller };
  }

  #refusal({ functionLogicalId, roleLogicalId }: KnownCaller, call: AwsCall): WireReply | undefined {
    for (const check of call.checks()) {
      const message = this.#denial(check, functionLogicalId, roleLogicalId);
      if (message === undefined) continue;
      this.#options.log?.(`denied: ${message}`);
      const [code, status] =
        call.service === 's3' ? (['AccessDenied', 403] as const) : (['AccessDeniedException', 400] as const);
      return errorReply({ service: call.service, code, message, status });
    }
    return undefined;
  }

  /** A bucket policy also denies calls of the host, which has no role. */
  #denial(check: AccessCheck, caller: string, roleLogicalId: string | undefined): string | undefined {
    const { iam } = this.#options;
    const byBucket = iam.deniedByBucket(check);
    if (byBucket !== undefined || roleLogicalId === undefined) return byBucket;
    const decision = iam.authorize({ roleLogicalId, caller, ...check });
    return decision.allowed ? undefined : decision.message;
  }

  async #authorizeAndExecute(caller: KnownCaller, call: AwsCall): Promise<WireReply> {
    const { service } = call;
    try {
      return this.#refusal(caller, call) ?? (await call.execute());
    } catch (error) {
      if (error instanceof AwsError) {
        const { code, message, httpStatus: status, details } = error;
        return errorReply({ service, code, message, status, ...(details && { details }) });
      }
      this.#options.log?.(`${service}.${call.operation}: ${error instanceof Error ? error.stack : String(error)}`);
      const code = service === 's3' ? 'InternalError' : 'InternalServerError';
      return errorReply({ service, code, message: `the local ${service} failed: ${String(error)}`, status: 500 });
    }
  }

  /** The socket stays open until the thread has ended, because its SDK would otherwise retry. */
  async #crash({ functionLogicalId, accessKeyId }: KnownCaller, answer: Answer): Promise<void> {
    if (functionLogicalId !== HOST_CALLER) await this.#options.crash(functionLogicalId, accessKeyId);
    answer.lose();
  }
}

function unrecognized(service: string, accessKeyId: string | undefined): WireReply {
  const [code, status] =
    service === 's3' ? (['InvalidAccessKeyId', 403] as const) : (['UnrecognizedClientException', 400] as const);
  const message = accessKeyId
    ? `No function of this host has the access key ${accessKeyId}`
    : 'The request is not signed';
  return errorReply({ service, code, message, status });
}
