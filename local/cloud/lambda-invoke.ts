/** The one operation of Lambda that functions and operators use: a synchronous invocation. */
import { AwsError, FunctionError, type InvokeFunction } from '../aws/aws.ts';
import type { RestService } from '../aws/aws-calls.ts';
import type { WireReply, WireRequest } from '../aws/wire.ts';
import type { AccessCheck } from '../iam/access-checks.ts';
import { TRACE_HEADER } from '../lambda/recursion.ts';

const INVOCATIONS = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/;
/** The limit for the request and for the response of a synchronous invocation. */
const PAYLOAD_MAX_BYTES = 6 * 1024 * 1024;

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
    if (request.body.length > PAYLOAD_MAX_BYTES) {
      throw new AwsError('RequestTooLargeException', `The request has more than ${PAYLOAD_MAX_BYTES} bytes.`, 413);
    }
    const headers = { 'content-type': 'application/json' };
    try {
      const result = await this.#invoke(arn, JSON.parse(request.body.toString()), request.headers[TRACE_HEADER]);
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
    const type = headers['x-amz-invocation-type'] ?? 'RequestResponse';
    if (encoded === undefined || method !== 'POST' || type !== 'RequestResponse') {
      throw new AwsError('UnknownOperationException', 'The local Lambda supports only synchronous invocations.');
    }
    const wanted = decodeURIComponent(encoded);
    const found = this.#functions.find(({ name, arn }) => wanted === name || wanted === arn);
    if (!found) throw new AwsError('ResourceNotFoundException', `Function not found: ${wanted}`, 404);
    return found;
  }
}
