/** The interface between the AWS endpoint (protocols, IAM, faults, counts) and the services in this process. */

/** A service with a JSON protocol (`x-amz-target`): SQS, Step Functions, Secrets Manager, KMS. */
export interface JsonService {
  /** `traceHeader` identifies the chain of invocations of the caller (recursion.ts). */
  call(operation: string, input: Record<string, unknown>, traceHeader?: string): Promise<Record<string, unknown>>;
}

/** An error of a service. In the SDK its `name` is `code`. */
export class AwsError extends Error {
  readonly code: string;
  readonly httpStatus: number;
  /** Further fields of the response. */
  readonly details: Record<string, unknown> | undefined;
  constructor(code: string, message: string, httpStatus = 400, details?: Record<string, unknown>) {
    super(message);
    this.code = code;
    this.httpStatus = httpStatus;
    this.details = details;
  }
}

/** Invokes a function of the template and returns its result. Rejects with `FunctionError` if it threw, timed out or crashed. */
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
