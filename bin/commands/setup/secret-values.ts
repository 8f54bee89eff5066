import { readFileSync } from 'node:fs';
import { EXIT, Failure } from '../failure.ts';
import { fileFailure } from '../read-file.ts';

/** A secret that is not there yet. The command continues without it and says what to set. */
export class MissingSecret extends Failure {
  readonly variable: string;
  constructor(variable: string) {
    super(EXIT.failed, `the environment variable ${variable} is not set`);
    this.variable = variable;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A value of a file with its secrets: `{ env: GITHUB_TOKEN }` is the variable, `{ file: key.pem }` the content of a file.
 * So a file with connections contains no secret itself, and can be in a repository.
 */
export function withSecrets(value: unknown, environment: Environment): unknown {
  if (Array.isArray(value)) return value.map((each) => withSecrets(each, environment));
  if (typeof value !== 'object' || value === null) return value;
  const [[name, source] = ['', undefined], ...others] = Object.entries(value);
  if (others.length === 0 && name === 'env' && typeof source === 'string') return fromVariable(source, environment);
  if (others.length === 0 && name === 'file' && typeof source === 'string') return fromFile(source);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withSecrets(inner, environment)]));
}

function fromVariable(name: string, environment: Environment): string {
  const value = environment[name];
  if (!value) throw new MissingSecret(name);
  return value;
}

function fromFile(file: string): string {
  try {
    return readFileSync(file, 'utf8').trimEnd();
  } catch (cause) {
    throw fileFailure('read', file, cause);
  }
}
