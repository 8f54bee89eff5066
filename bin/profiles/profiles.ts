import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parsed } from '../../client/api-client.ts';
import { didYouMean } from '../../lambdas/entry/did-you-mean.ts';
import { EXIT, Failure, UsageError } from '../commands/failure.ts';

/** A sign-in with an OIDC issuer. */
export interface SignIn {
  issuer: string;
  clientId: string;
  tokenEndpoint: string;
  /** Which token of the issuer the API accepts. */
  sends: 'id_token' | 'access_token';
  token: string;
  expiresAt: string;
  refreshToken?: string;
}

/** A stage, and who one is there: by API key or by sign-in. */
export interface Profile {
  url: string;
  apiKey?: string;
  signIn?: SignIn;
}

interface ProfilesFile {
  current?: string;
  profiles: Record<string, Profile>;
}

/** The stored profiles. The file contains credentials, so only its owner can read it. */
export class Profiles {
  readonly #file: string | undefined;

  constructor(environment: NodeJS.ProcessEnv) {
    this.#file = profilesFile(environment);
  }

  /** The profile with this name. */
  named(name: string): Profile {
    const { profiles } = this.#read();
    const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
    if (found) return found;
    const names = Object.keys(profiles);
    const known = names.length === 0 ? '; countersign login creates one' : `; there are: ${names.join(', ')}`;
    throw new UsageError(`there is no profile "${name}"${didYouMean(name, names) || known}`);
  }

  /** The profile that is used without `--profile`. */
  current(): { name: string; profile: Profile } | undefined {
    const { current, profiles } = this.#read();
    const profile = current === undefined ? undefined : profiles[current];
    return current !== undefined && profile ? { name: current, profile } : undefined;
  }

  /** A profile of this stage, the current one first. */
  at(url: string): { name: string; profile: Profile } | undefined {
    const current = this.current();
    if (current?.profile.url === url) return current;
    const [name, profile] = Object.entries(this.#read().profiles).find(([, each]) => each.url === url) ?? [];
    return name !== undefined && profile ? { name, profile } : undefined;
  }

  list(): { name: string; isCurrent: boolean; profile: Profile }[] {
    const { current, profiles } = this.#read();
    return Object.entries(profiles).map(([name, profile]) => ({ name, isCurrent: name === current, profile }));
  }

  save(name: string, profile: Profile, { makeCurrent }: { makeCurrent: boolean }): void {
    const stored = this.#read();
    const profiles = { ...stored.profiles, [name]: profile };
    this.#write({ ...stored, ...(makeCurrent && { current: name }), profiles });
  }

  use(name: string): void {
    this.named(name);
    this.#write({ ...this.#read(), current: name });
  }

  remove(name: string): void {
    this.named(name);
    const { current, profiles } = this.#read();
    const { [name]: _removed, ...rest } = profiles;
    this.#write({ ...(current !== name && { current }), profiles: rest });
  }

  #read(): ProfilesFile {
    if (this.#file === undefined) return { profiles: {} };
    let text: string;
    try {
      text = readFileSync(this.#file, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { profiles: {} };
      throw new Failure(EXIT.usage, `cannot read the profiles: ${(error as Error).message}`, { cause: error });
    }
    const content = parsed(text);
    if (isProfilesFile(content)) return content;
    throw new Failure(
      EXIT.usage,
      `${this.#file} is not a file of profiles; correct it, or delete it and sign in again`,
    );
  }

  /** Replaces the whole file, so that a crash leaves the old one. */
  #write(content: ProfilesFile): void {
    if (this.#file === undefined) {
      throw new Failure(EXIT.usage, 'there is no home folder for profiles; set COUNTERSIGN_PROFILES to a file');
    }
    mkdirSync(dirname(this.#file), { recursive: true, mode: 0o700 });
    const draft = `${this.#file}.${process.pid}`;
    writeFileSync(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
    chmodSync(draft, 0o600);
    renameSync(draft, this.#file);
  }
}

function profilesFile(environment: NodeJS.ProcessEnv): string | undefined {
  const { COUNTERSIGN_PROFILES, XDG_CONFIG_HOME, HOME, USERPROFILE } = environment;
  if (COUNTERSIGN_PROFILES) return COUNTERSIGN_PROFILES;
  const home = HOME || USERPROFILE;
  const folder = XDG_CONFIG_HOME || (home && join(home, '.config'));
  return folder ? join(folder, 'countersign', 'profiles.json') : undefined;
}

/** Without zod, because every command reads this file, and loading zod takes longer than most commands. */
function isProfilesFile(content: object | undefined): content is ProfilesFile {
  const { current, profiles } = (content ?? {}) as Record<string, unknown>;
  return isText(current, true) && isObject(profiles) && Object.values(profiles).every(isProfile);
}

const isProfile = (value: unknown): boolean =>
  isObject(value) &&
  isText(value.url) &&
  isText(value.apiKey, true) &&
  (value.signIn === undefined || (isObject(value.signIn) && isSignIn(value.signIn)));

const isSignIn = ({ sends, refreshToken, ...texts }: Record<string, unknown>): boolean =>
  (sends === 'id_token' || sends === 'access_token') &&
  isText(refreshToken, true) &&
  ['issuer', 'clientId', 'tokenEndpoint', 'token', 'expiresAt'].every((name) => isText(texts[name]));

const isText = (value: unknown, isOptional = false): boolean =>
  typeof value === 'string' || (isOptional && value === undefined);
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const LOCAL_PORT = '4500';

/** `local`, `local-4620`, or the first part of the host name. */
export function profileNameFor(url: string): string {
  const { hostname, port } = new URL(url);
  if (isLoopback(hostname)) return port === LOCAL_PORT ? 'local' : `local-${port}`;
  return hostname.split('.')[0] ?? hostname;
}

export const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
