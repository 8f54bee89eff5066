import { Api } from '../client/api-client.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { type ExitCode, UsageError } from './failure.ts';
import { LOCAL_TENANT, localOwnerKey } from './webhook/sign-delivery.ts';

export interface Option {
  /** Name of the value in the usage; an option without one is a switch. */
  value?: string;
  /** May be given more than once. */
  many?: true;
  /** The command does not go without it. */
  required?: true;
  says: string;
}

export interface Command {
  /** The words that call it, `runs list`. */
  name: string;
  /** What must follow, in order; in brackets, what may; `FILE…` is one or more. */
  takes: readonly string[];
  says: string;
  /** More than one line can say; shown by `--help`. */
  details?: string;
  options: Record<string, Option>;
  run(call: Call): Promise<ExitCode>;
}

export const GLOBAL_OPTIONS: Record<string, Option> = {
  url: { value: 'URL', says: 'where Countersign answers (COUNTERSIGN_URL; default http://127.0.0.1:4500)' },
  key: { value: 'KEY', says: 'API key (COUNTERSIGN_API_KEY; on this machine local-owner-key)' },
  json: { says: 'output for machines' },
  help: { says: 'this text; so does countersign help COMMAND' },
};

const DEFAULT_URL = 'http://127.0.0.1:4500';

type Values = Record<string, string | boolean | string[] | undefined>;

/** One call of a command: what was given, and where to write. */
export class Call {
  readonly terminal: Terminal;
  readonly json: boolean;
  readonly url: string;
  readonly #values: Values;
  readonly #positionals: string[];
  readonly #environment: NodeJS.ProcessEnv;

  constructor(terminal: Terminal, environment: NodeJS.ProcessEnv, given: { values: Values; positionals: string[] }) {
    this.terminal = terminal;
    this.#environment = environment;
    this.#values = given.values;
    this.#positionals = given.positionals;
    this.json = given.values.json === true;
    this.url = baseUrl(this.text('url') ?? (environment.COUNTERSIGN_URL || DEFAULT_URL));
  }

  text(option: string): string | undefined {
    // Another command may take an option of this name more than once.
    const value = [this.#values[option]].flat().at(-1);
    return typeof value === 'string' ? value : undefined;
  }

  /** Every value of an option that may be given more than once. */
  texts(option: string): readonly string[] {
    const values = this.#values[option];
    return Array.isArray(values) ? values : [];
  }

  isSet(option: string): boolean {
    return this.#values[option] === true;
  }

  positional(index: number): string {
    return this.#positionals[index] ?? '';
  }

  /** What a last `FILE…` stands for. */
  get positionals(): readonly string[] {
    return this.#positionals;
  }

  /** True for a host on this machine, whose keys and secrets are fixed and documented. */
  get isLocal(): boolean {
    const { hostname } = new URL(this.url);
    return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
  }

  api(): Api {
    const key =
      this.text('key') ?? (this.#environment.COUNTERSIGN_API_KEY || (this.isLocal ? localOwnerKey(LOCAL_TENANT) : ''));
    if (!key) throw new UsageError(`${this.url} needs an API key: give it with --key, or set COUNTERSIGN_API_KEY`);
    return new Api({ url: this.url, key });
  }

  printJson(value: unknown): void {
    this.terminal.print(JSON.stringify(value, null, 2));
  }
}

function baseUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new UsageError(`--url ${text} is not a URL; it looks like ${DEFAULT_URL}`);
  }
  return text.replace(/\/+$/, '');
}
