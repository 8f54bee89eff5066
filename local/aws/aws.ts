/** What every AWS service hosted in this process looks like to the gateway, which owns the wire, IAM, faults and counts. */

/** A service with a JSON protocol (`x-amz-target`): SQS, Step Functions, Secrets Manager, KMS. */
export interface JsonService {
  /** `traceHeader`: the chain of invocations that the caller is part of (recursion.ts). */
  call(operation: string, input: Record<string, unknown>, traceHeader?: string): Promise<Record<string, unknown>>;
}

/** A service error as the SDK will see it: its `name` in the client is `code`. */
export class AwsError extends Error {
  readonly code: string;
  readonly httpStatus: number;
  constructor(code: string, message: string, httpStatus = 400) {
    super(message);
    this.code = code;
    this.httpStatus = httpStatus;
  }
}

/** Invokes a function of the template and returns what its handler returned; rejects with `FunctionError` if it threw, timed out or crashed. */
export type InvokeFunction = (functionArn: string, event: unknown, traceHeader?: string) => Promise<unknown>;

export class FunctionError extends Error {
  readonly errorType: string;
  constructor(errorType: string, message: string) {
    super(message);
    this.errorType = errorType;
  }
}

export const REGION = 'us-east-1';
export const ACCOUNT = '000000000000';
