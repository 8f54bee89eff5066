/** The one operation of Lambda that functions and operators use: an invocation, with or without waiting for its result. */
import { AwsError, FunctionError, type InvokeFunction } from '../aws/aws.ts';
import type { RestService } from '../aws/aws-calls.ts';
import type { WireReply, WireRequest } from '../aws/wire.ts';
import type { AccessCheck } from '../iam/access-checks.ts';
import { TRACE_HEADER } from '../lambda/recursion.ts';

const INVOCATIONS = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/;
/** The limit for the request and for the response of a synchronous invocation. */
const PAYLOAD_MAX_BYTES = 6 * 1024 * 1024;
/** The limit for the request of an invocation whose result nobody waits for. */
const EVENT_MAX_BYTES = 256 * 1024;
const TYPE_HEADER = 'x-amz-invocation-type';

interface InvokedFunction {
  name: string;
  arn: string;
}

export class LocalLambdaInvoke implements RestService {
  readonly #functions: readonly InvokedFunction[];
  readonly #invoke: InvokeFunction;

  constructor({ functions, invoke }: { functions: readonly InvokedFunction[]; invoke: InvokeFunction }) {
    this.#functions = functions;
    this.#invoke = invoke;
  }

  describe(request: WireRequest): { operation: string; checks: AccessCheck[] } {
    return {
      operation: 'Invoke',
      checks: [{ action: 'lambda:InvokeFunction', resource: this.#find(request).arn }],
    };
  }

  async handle(request: WireRequest): Promise<WireReply> {
    const { arn } = this.#find(request);
    const isEvent = request.headers[TYPE_HEADER] === 'Event';
    const maxBytes = isEvent ? EVENT_MAX_BYTES : PAYLOAD_MAX_BYTES;
    if (request.body.length > maxBytes) {
      throw new AwsError('RequestTooLargeException', `The request has more than ${maxBytes} bytes.`, 413);
    }
    const headers = { 'content-type': 'application/json' };
    const invoked = this.#invoke(arn, JSON.parse(request.body.toString()), request.headers[TRACE_HEADER]);
    if (isEvent) {
      // The template allows no repeats of a failed event. The function has logged the error.
      invoked.catch(() => {});
      return { status: 202, headers, body: '' };
    }
    try {
      const result = await invoked;
      return { status: 200, headers, body: JSON.stringify(result ?? null) };
    } catch (error) {
      if (!(error instanceof FunctionError)) throw error;
      const { errorType, message: errorMessage } = error;
      const failed = { ...headers, 'x-amz-function-error': 'Unhandled' };
      return { status: 200, headers: failed, body: JSON.stringify({ errorType, errorMessage }) };
    }
  }

  #find({ method, path, headers }: WireRequest): InvokedFunction {
    const [, encoded] = INVOCATIONS.exec(path) ?? [];
    const type = headers[TYPE_HEADER] ?? 'RequestResponse';
    if (encoded === undefined || method !== 'POST' || !['RequestResponse', 'Event'].includes(type)) {
      throw new AwsError('UnknownOperationException', 'The local Lambda supports only invocations.');
    }
    const wanted = decodeURIComponent(encoded);
    const found = this.#functions.find(({ name, arn }) => wanted === name || wanted === arn);
    if (!found) throw new AwsError('ResourceNotFoundException', `Function not found: ${wanted}`, 404);
    return found;
  }
}
