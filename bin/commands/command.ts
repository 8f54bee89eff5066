import type { Credentials } from '../../client/api-client.ts';
import { Api } from '../client/api-client.ts';
import { apiKeyHeaders, headersOf } from '../profiles/credentials.ts';
import { isLoopback, Profiles } from '../profiles/profiles.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { type ExitCode, UsageError } from './failure.ts';
import { LOCAL_TENANT, localOwnerKey } from './local-stage.ts';

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
  profile: { value: 'NAME', description: 'stage and credential of countersign login (COUNTERSIGN_PROFILE)' },
  json: { description: 'print JSON' },
  help: { description: 'show this help' },
};

const DEFAULT_URL = 'http://127.0.0.1:4500';

type Values = Record<string, string | boolean | string[] | undefined>;

/** One invocation of a command: its options and arguments, and the terminal to write to. */
export class Call {
  readonly terminal: Terminal;
  readonly json: boolean;
  readonly profiles: Profiles;
  readonly #values: Values;
  readonly #args: string[];
  readonly #environment: NodeJS.ProcessEnv;

  constructor(terminal: Terminal, environment: NodeJS.ProcessEnv, given: { values: Values; args: string[] }) {
    this.terminal = terminal;
    this.#environment = environment;
    this.#values = given.values;
    this.#args = given.args;
    this.json = given.values.json === true;
    this.profiles = new Profiles(environment);
  }

  /** In this order: `--url`, `--profile`, the environment, the current profile, the local host. */
  get url(): string {
    const given = this.option('url');
    const profile = this.option('profile');
    if (given !== undefined && profile !== undefined) throw new UsageError('pass --url or --profile, not both');
    if (given !== undefined) return baseUrl(given);
    const { COUNTERSIGN_URL, COUNTERSIGN_PROFILE } = this.#environment;
    const named = profile ?? (COUNTERSIGN_URL ? undefined : COUNTERSIGN_PROFILE || undefined);
    if (named !== undefined) return this.profiles.named(named).url;
    return baseUrl(COUNTERSIGN_URL || (this.profiles.current()?.profile.url ?? DEFAULT_URL));
  }

  /** Variables that files of this call name, for secrets. */
  get environment(): NodeJS.ProcessEnv {
    return this.#environment;
  }

  option(name: string): string | undefined {
    // The value is a list if another command declares this option as repeatable.
    const value = [this.#values[name]].flat().at(-1);
    return typeof value === 'string' ? value : undefined;
  }

  /** A whole number, 0 or more. */
  numberOption(name: string): number | undefined {
    const given = this.option(name);
    if (given === undefined) return undefined;
    if (/^\d{1,9}$/.test(given)) return Number(given);
    throw new UsageError(`--${name} must be a number, not "${given}"`);
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
    return isLoopback(new URL(this.url).hostname);
  }

  api(): Api {
    return new Api({ url: this.url, headers: this.#headers() });
  }

  /** What identifies the caller. The credential of a profile is sent to the stage of that profile only. */
  #headers(): Credentials {
    const { COUNTERSIGN_API_KEY, COUNTERSIGN_PROFILE } = this.#environment;
    const { url } = this;
    const key = this.option('key') ?? (this.option('profile') === undefined ? COUNTERSIGN_API_KEY : undefined);
    if (key) return apiKeyHeaders(key);
    const name = this.option('profile') ?? (COUNTERSIGN_PROFILE || undefined);
    const named = name === undefined ? undefined : { name, profile: this.profiles.named(name) };
    const used = named?.profile.url === url ? named : this.profiles.at(url);
    if (used) return () => headersOf(this.profiles, used.name, used.profile);
    if (this.isLocal) return apiKeyHeaders(localOwnerKey(LOCAL_TENANT));
    throw new UsageError(`you are not signed in at ${url}; run: countersign login ${url}, or pass --key`);
  }

  printJson(value: unknown): void {
    this.terminal.print(JSON.stringify(value, null, 2));
  }
}

export function baseUrl(text: string, what = '--url'): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new UsageError(`${what} ${text} is not a URL; example: ${DEFAULT_URL}`);
  }
  return text.replace(/\/+$/, '');
}
