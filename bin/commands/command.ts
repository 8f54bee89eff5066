import { Api } from '../client/api-client.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { type ExitCode, UsageError } from './failure.ts';
import { LOCAL_TENANT, localOwnerKey } from './webhook/sign-delivery.ts';

export interface Option {
  /** Placeholder for the value in the usage line. An option without a value is a switch. */
  value?: string;
  repeatable?: true;
  required?: true;
  description: string;
}

export interface Command {
  /** For example `runs list`. */
  name: string;
  /** In order. `[FILE]` is optional, `FILE…` is one or more. */
  args: readonly string[];
  /** One line for the command list. */
  description: string;
  /** Further lines for `--help`. */
  details?: string;
  options: Record<string, Option>;
  /** Uses no API, so `--url` and `--key` do not apply. */
  offline?: true;
  run(call: Call): Promise<ExitCode>;
}

export const GLOBAL_OPTIONS: Record<string, Option> = {
  url: { value: 'URL', description: 'URL of the API (COUNTERSIGN_URL; default http://127.0.0.1:4500)' },
  key: { value: 'KEY', description: 'API key (COUNTERSIGN_API_KEY; default for a local host: local-owner-key)' },
  json: { description: 'print JSON' },
  help: { description: 'show this help' },
};

const DEFAULT_URL = 'http://127.0.0.1:4500';

type Values = Record<string, string | boolean | string[] | undefined>;

/** One invocation of a command: its options and arguments, and the terminal to write to. */
export class Call {
  readonly terminal: Terminal;
  readonly json: boolean;
  readonly url: string;
  readonly #values: Values;
  readonly #args: string[];
  readonly #environment: NodeJS.ProcessEnv;

  constructor(terminal: Terminal, environment: NodeJS.ProcessEnv, given: { values: Values; args: string[] }) {
    this.terminal = terminal;
    this.#environment = environment;
    this.#values = given.values;
    this.#args = given.args;
    this.json = given.values.json === true;
    this.url = baseUrl(this.option('url') ?? (environment.COUNTERSIGN_URL || DEFAULT_URL));
  }

  option(name: string): string | undefined {
    // The value is a list if another command declares this option as repeatable.
    const value = [this.#values[name]].flat().at(-1);
    return typeof value === 'string' ? value : undefined;
  }

  /** All values of a repeatable option. */
  options(name: string): readonly string[] {
    const values = this.#values[name];
    return Array.isArray(values) ? values : [];
  }

  isSet(name: string): boolean {
    return this.#values[name] === true;
  }

  arg(index: number): string {
    return this.#args[index] ?? '';
  }

  get args(): readonly string[] {
    return this.#args;
  }

  /** True for a host on this machine. Its keys and secrets are fixed and documented. */
  get isLocal(): boolean {
    const { hostname } = new URL(this.url);
    return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
  }

  api(): Api {
    const key =
      this.option('key') ??
      (this.#environment.COUNTERSIGN_API_KEY || (this.isLocal ? localOwnerKey(LOCAL_TENANT) : ''));
    if (!key) throw new UsageError(`${this.url} requires an API key: pass --key, or set COUNTERSIGN_API_KEY`);
    return new Api({ url: this.url, key });
  }

  printJson(value: unknown): void {
    this.terminal.print(JSON.stringify(value, null, 2));
  }
}

function baseUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new UsageError(`--url ${text} is not a URL; example: ${DEFAULT_URL}`);
  }
  return text.replace(/\/+$/, '');
}
