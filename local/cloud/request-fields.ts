/** Reads fields of a JSON-protocol request, refusing wrong ones the way AWS does: before anything has happened. */
import { AwsError } from '../aws/aws.ts';

export type Fields = Record<string, unknown>;

/** The code a service uses for a malformed field; SQS, KMS and Step Functions each have their own. */
export interface FieldReader {
  text(input: Fields, name: string): string;
  optionalText(input: Fields, name: string): string | undefined;
  integer(input: Fields, name: string, bounds: { min: number; max: number }): number | undefined;
  list(input: Fields, name: string): Fields[];
  texts(input: Fields, name: string): string[];
}

export function fieldReader(codes: { missing: string; invalid: string }): FieldReader {
  const invalid = (name: string, why: string) => new AwsError(codes.invalid, `Value for parameter ${name} ${why}.`);
  const optionalText = (input: Fields, name: string) => {
    const value = input[name];
    if (value === undefined || value === null) return undefined;
    if (typeof value !== 'string') throw invalid(name, 'must be a string');
    return value;
  };
  const array = (input: Fields, name: string): unknown[] => {
    const value = input[name] ?? [];
    if (!Array.isArray(value)) throw invalid(name, 'must be a list');
    return value;
  };
  return {
    optionalText,
    text(input, name) {
      const value = optionalText(input, name);
      if (value === undefined || value === '') {
        throw new AwsError(codes.missing, `The request must contain the parameter ${name}.`);
      }
      return value;
    },
    integer(input, name, { min, max }) {
      const value = input[name];
      if (value === undefined || value === null) return undefined;
      if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
        throw invalid(name, `is invalid. Reason: Must be an integer between ${min} and ${max}`);
      }
      return value;
    },
    list(input, name) {
      return array(input, name).map((entry) => {
        if (!isFields(entry)) throw invalid(name, 'must be a list of structures');
        return entry;
      });
    },
    texts(input, name) {
      return array(input, name).map((entry) => {
        if (typeof entry !== 'string') throw invalid(name, 'must be a list of strings');
        return entry;
      });
    },
  };
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Each service's table of operations; an operation outside it is refused by name, never ignored. */
export function operationOf<Handler>(service: string, table: Record<string, Handler>, operation: string): Handler {
  const handler = Object.hasOwn(table, operation) ? table[operation] : undefined;
  if (handler === undefined) {
    throw new AwsError('UnknownOperationException', `The local ${service} does not offer ${operation}.`);
  }
  return handler;
}
