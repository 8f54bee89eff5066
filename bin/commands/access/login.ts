import { spawn } from 'node:child_process';
import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import { Api } from '../../client/api-client.ts';
import { apiKeyHeaders, tokenHeaders } from '../../profiles/credentials.ts';
import type { Issuer } from '../../profiles/oidc-sign-in.ts';
import { type Profile, profileNameFor } from '../../profiles/profiles.ts';
import { printable } from '../../terminal/terminal.ts';
import { baseUrl, type Call, type Command } from '../command.ts';
import { EXIT, Failure, UsageError } from '../failure.ts';

export const login: Command = {
  name: 'login',
  args: ['[URL]'],
  description: 'sign in at a stage and store it as a profile',
  details: [
    'Signs in with an OIDC issuer of the stage in your browser, or with --key and an API key.',
    'The profile is used by all later commands. --profile gives it a name; without, it is made from the URL.',
    'Profiles are in ~/.config/countersign/profiles.json (COUNTERSIGN_PROFILES), readable by you only.',
  ].join('\n'),
  options: {
    issuer: { value: 'NAME', description: 'the issuer, if the stage has several' },
    'no-browser': { description: 'only print the address to open' },
  },
  async run(call) {
    const url = call.args.length > 0 ? baseUrl(call.arg(0), 'the URL') : call.url;
    const key = call.option('key');
    const profile: Profile = key === undefined ? { url, signIn: await withIssuer(call, url) } : { url, apiKey: key };
    const headers = profile.signIn ? tokenHeaders(profile.signIn.token) : apiKeyHeaders(key ?? '');
    // A credential that the stage refuses is not stored.
    const me = await new Api({ url, headers }).call('GET /api/v1/me');
    const name = call.option('profile') ?? profileNameFor(url);
    call.profiles.save(name, profile, { makeCurrent: true });
    if (call.json) call.printJson({ profile: name, url, ...me });
    else {
      call.terminal.print(printable(`signed in at ${url} as ${me.name ?? me.person}, ${me.role} of ${me.tenant}`));
      call.terminal.note(`profile ${name} is now the default; countersign profiles list shows all`);
    }
    return EXIT.ok;
  },
};

async function withIssuer(call: Call, url: string) {
  const { issuers } = await new Api({ url, headers: {} }).call('GET /api/v1/sign-in');
  const issuer = await chosen(call, url, issuers);
  const open = (address: string) => {
    call.terminal.note(`sign in here: ${address}`);
    if (call.terminal.isInteractive && !call.isSet('no-browser')) openInBrowser(address);
  };
  const { signIn } = await import('../../profiles/oidc-sign-in.ts');
  return signIn(issuer, open, () => Date.now());
}

async function chosen(call: Call, url: string, issuers: readonly Issuer[]): Promise<Issuer> {
  const names = issuers.map(({ name }) => name);
  if (issuers.length === 0) {
    throw new Failure(
      EXIT.refused,
      `${url} has no OIDC issuer; use an API key: countersign login ${url} --key KEY, or set issuers of the stage`,
    );
  }
  const [only] = issuers;
  const wanted =
    call.option('issuer') ??
    (issuers.length === 1 ? only?.name : await call.terminal.ask(`which issuer (${names.join(', ')})? `));
  const found = issuers.find(({ name }) => name === wanted);
  if (found) return found;
  const given = wanted === undefined || wanted === '' ? '' : `, not "${wanted}"${didYouMean(wanted, names)}`;
  throw new UsageError(`--issuer must be one of ${names.join(', ')}${given}`);
}

/** Without a browser the person opens the printed address. */
function openInBrowser(address: string): void {
  const program = process.platform === 'darwin' ? 'open' : process.platform === 'win32' ? 'explorer' : 'xdg-open';
  const child = spawn(program, [address], { stdio: 'ignore', detached: true });
  child.on('error', () => {});
  child.unref();
}

export const logout: Command = {
  name: 'logout',
  args: [],
  description: 'delete the current profile and its credential',
  options: {},
  offline: true,
  async run(call) {
    const name = call.option('profile') ?? call.profiles.current()?.name;
    if (name === undefined) throw new UsageError('you are not signed in; countersign profiles list shows all profiles');
    call.profiles.remove(name);
    if (call.json) call.printJson({ removed: name });
    else call.terminal.print(`removed the profile ${name}`);
    return EXIT.ok;
  },
};
