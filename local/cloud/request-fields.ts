/** Reads the fields of a JSON-protocol request. A wrong field is refused with the error of AWS before anything happens. */
import { AwsError } from '../aws/aws.ts';

export type Fields = Record<string, unknown>;

interface FieldReader {
  text(input: Fields, name: string): string;
  optionalText(input: Fields, name: string): string | undefined;
  integer(input: Fields, name: string, bounds: { min: number; max: number }): number | undefined;
  list(input: Fields, name: string): Fields[];
  texts(input: Fields, name: string): string[];
}

/** Each service has its own error codes for a missing and for an invalid field. */
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

/** An operation and the parameters it supports. */
export type Operation<Run> = [parameters: string[], run: Run];

/** Finds an operation. An unsupported operation or parameter is refused by name, because ignoring it would hide a bug. */
export function findOperation<Run>(
  service: string,
  operations: Record<string, Operation<Run>>,
  name: string,
  input: Fields,
): Run {
  const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
  if (operation === undefined) throw unsupported(service, name);
  const [parameters, run] = operation;
  refuseOthers(input, parameters, `${service} ${name}`);
  return run;
}

/** Refuses a structure with a field that is not in the list. */
export function refuseOthers(input: Fields, supported: string[], what: string): void {
  const other = Object.keys(input).find((name) => !supported.includes(name));
  if (other !== undefined) throw unsupported(what, `the parameter ${other}`);
}

function unsupported(where: string, what: string): AwsError {
  return new AwsError('UnknownOperationException', `The local ${where} does not support ${what}.`);
}
