import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { RequestFor } from '../../../client/api-client.ts';
import type { DescribedStage } from '../../../lambdas/setup/bootstrap.ts';
import { Api } from '../../client/api-client.ts';
import type { Operator } from '../../operator/invoke-as-operator.ts';
import { OPERATOR_OPTIONS } from '../../operator/operator-options.ts';
import { apiKeyHeaders } from '../../profiles/credentials.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, Failure, UsageError } from '../failure.ts';
import { readFile, writeFile } from '../read-file.ts';
import { newSigningSecret } from '../webhook/set-secret.ts';
import { printFindings } from './doctor.ts';
import { githubText, servicenowText, slackManifest, slackText } from './handover.ts';
import { PrivateFolder } from './private-folder.ts';
import { MissingSecret, withSecrets } from './secret-values.ts';
import { changeable } from './settings.ts';
import type { ConnectionEntry, TenantFile } from './tenant-file.ts';

type ReadTenantFile = TenantFile & { folder: string };

export const tenantAdd: readonly Command[] = [
  {
    name: 'tenant add',
    args: ['[FILE]'],
    description: 'set up a tenant from a file, or by asking',
    details:
      'FILE is YAML or JSON; README, "Deploy", has an example. If it does not exist, the command asks, and writes it\n' +
      '(default TENANT.tenant.yaml).\n' +
      'The first owners are created with AWS credentials (--stage), everything else over the API. Run it again at any time:\n' +
      'it continues where it was interrupted, and changes nothing that is already as in the file.\n' +
      'Keys, generated secrets and instructions for GitHub, Slack and ServiceNow are written to the folder --out.',
    options: {
      ...OPERATOR_OPTIONS,
      out: {
        value: 'FOLDER',
        description: 'folder for keys, secrets and instructions (default .countersign/tenants/STAGE-TENANT)',
      },
    },
    async run(call) {
      const { readTenantFile } = await import('./tenant-file.ts');
      const given = call.arg(0);
      // At a terminal, a file that does not exist is written. A mistake in one is reported before AWS is called.
      const isRead = given !== '' && (existsSync(given) || !call.terminal.isInteractive);
      const read = isRead ? await readTenantFile(given) : undefined;
      const { operatorOf } = await import('../../operator/invoke-as-operator.ts');
      const operator = await operatorOf(call);
      const stage = await operator.describe();
      if (read) return new TenantSetup(call, { file: read, name: given, operator, stage }).run();
      const { askForTenant } = await import('./ask-for-tenant.ts');
      const name = await askForTenant(call, stage, given);
      return new TenantSetup(call, { file: await readTenantFile(name), name, operator, stage }).run();
    },
  },
  {
    name: 'tenant owner',
    args: ['ID'],
    description: 'add an owner with AWS credentials',
    options: {
      ...OPERATOR_OPTIONS,
      tenant: { value: 'TENANT', required: true, description: 'the tenant' },
      name: { value: 'NAME', required: true, description: 'name of the person' },
      identity: {
        value: 'IDENTITY',
        repeatable: true,
        description: 'for example github:olivia or slack:T0ACME/U0OLIVIA',
      },
    },
    async run(call) {
      const [tenant, name, id] = [call.option('tenant'), call.option('name'), call.arg(0)];
      if (tenant === undefined || name === undefined) throw new UsageError('--tenant and --name are required');
      const key = newApiKey();
      const owner = { id, name, identities: [...call.options('identity')] };
      const keys = [{ person: id, sha256: hashOf(key) }];
      const { operatorOf } = await import('../../operator/invoke-as-operator.ts');
      const { added } = await (await operatorOf(call)).addOwners({ tenant, owners: [owner], keys });
      if (call.json) call.printJson({ added, key });
      else {
        call.terminal.print(printable(added.length > 0 ? `added the owner ${id}` : `${id} is an owner already`));
        call.terminal.print(`a new API key of ${printable(id)}, which is not shown again: ${key}`);
      }
      return EXIT.ok;
    },
  },
];

const newApiKey = (): string => `csk_${randomBytes(32).toString('base64url')}`;
const hashOf = (key: string): string => createHash('sha256').update(key).digest('hex');

/** One run of `tenant add`. Each step does only what is missing. */
class TenantSetup {
  readonly #call: Call;
  readonly #file: ReadTenantFile;
  readonly #operator: Operator;
  readonly #stage: DescribedStage;
  readonly #folder: PrivateFolder;
  /** The command that continues. */
  readonly #again: string;
  /** What a person has to do. */
  readonly #todo: string[] = [];
  readonly #done: { step: string; result: string }[] = [];

  constructor(call: Call, setup: { file: ReadTenantFile; name: string; operator: Operator; stage: DescribedStage }) {
    const { file, name, operator, stage } = setup;
    this.#call = call;
    this.#file = file;
    this.#operator = operator;
    this.#stage = stage;
    const out = call.option('out') ?? join('.countersign', 'tenants', `${stage.stage}-${file.tenant}`);
    this.#folder = new PrivateFolder(out);
    const options = (['stage', 'region', 'url', 'out'] as const).flatMap((option) => {
      const value = call.option(option);
      return value === undefined ? [] : [` --${option} ${value}`];
    });
    this.#again = `npx countersign tenant add ${name}${options.join('')}`;
  }

  async run() {
    const api = await this.#bootstrap();
    await this.#settings(api);
    for (const [name, entry] of Object.entries(this.#file.connections)) await this.#connection(api, name, entry);
    await this.#people(api);
    await this.#automations(api, await this.#workflows(api));
    this.#handover();
    const { findings } = await api.call('GET /api/v1/doctor');
    const { json, terminal } = this.#call;
    if (json) this.#call.printJson({ done: this.#done, todo: this.#todo, findings });
    else {
      terminal.print('');
      terminal.print(this.#todo.length === 0 ? 'Nothing is left to do.' : 'Left to do:');
      for (const each of this.#todo) terminal.print(printable(`  [ ] ${each}`));
      if (this.#todo.length > 0) terminal.print(printable(`Then continue: ${this.#again}`));
      if (findings.length > 0) terminal.print('\nWhat countersign doctor finds:');
      printFindings(this.#call, findings);
      terminal.print('');
      terminal.print(printable(`Keys, secrets and instructions are in ${this.#folder.path}`));
      terminal.print(`Check again: npx countersign doctor --url ${this.#stage.url} --key "$(cat ${this.#keyFile()})"`);
    }
    return this.#todo.length === 0 && findings.every(({ level }) => level !== 'error') ? EXIT.ok : EXIT.failed;
  }

  #report(step: string, result: string): void {
    this.#done.push({ step, result });
    if (!this.#call.json) this.#call.terminal.print(printable(`${step}: ${result}`));
  }

  get #owners() {
    return this.#file.people.filter(({ role }) => role === 'owner');
  }

  #keyFile(person = this.#owners[0]?.id ?? ''): string {
    return this.#folder.file(`${person}.key`);
  }

  /** The owners, and a key for each of them. Only the hash of a key leaves this machine. */
  async #bootstrap(): Promise<Api> {
    const { tenant } = this.#file;
    const owners = this.#owners.map(({ id, name, identities }) => ({ id, name, identities }));
    const plain = owners.map(({ id }) => ({
      person: id,
      key: this.#folder.readOrCreate(`${id}.key`, newApiKey),
    }));
    const keys = plain.map(({ person, key }) => ({ person, sha256: hashOf(key) }));
    const { added, existing } = await this.#operator.addOwners({ tenant, owners, keys });
    this.#report('owners', [...added.map((id) => `${id} (new)`), ...existing].join(', '));
    if (owners.length < 2 && this.#stage.kind === 'prod') {
      this.#todo.push('add a second owner to the file: in prod another owner confirms who may approve');
    }
    const url = this.#call.option('stage') === undefined ? this.#call.url : this.#stage.url;
    return new Api({ url, headers: apiKeyHeaders(plain[0]?.key ?? '') });
  }

  async #settings(api: Api): Promise<void> {
    const wanted = this.#file.settings;
    if (!wanted) return;
    const before = changeable(await api.call('GET /api/v1/settings'));
    if (isPartOf(wanted, before)) return this.#report('settings', 'unchanged');
    await api.call('PUT /api/v1/settings', { body: { ...before, ...wanted } });
    this.#report('settings', 'saved');
  }

  async #connection(api: Api, name: string, entry: ConnectionEntry): Promise<void> {
    const { webhookSecret, credential, planCredential, ...fields } = entry;
    const address = withOwnUrl(fields, this.#stage.url);
    const { connections } = await api.call('GET /api/v1/connections', { query: { limit: '100' } });
    const before = connections.find((each) => each.name === name);
    const given = {
      credential: this.#secretsOf(name, 'credential', credential, before?.credential.state === 'set'),
      planCredential: this.#secretsOf(name, 'planCredential', planCredential, before?.planCredential.state === 'set'),
    };
    const body = {
      ...address,
      ...(given.credential && { credential: given.credential }),
      ...(given.planCredential && { planCredential: given.planCredential }),
    } as RequestFor<'PUT /api/v1/connections/{name}'>['body'];
    await api.call('PUT /api/v1/connections/{name}', { params: { name }, body });
    this.#report(`connection ${name}`, before ? 'up to date' : 'added');
    if (webhookSecret !== undefined) await this.#signingSecret(api, name, webhookSecret);
  }

  /** A secret that is not in the environment stays as it is, or is left to do. */
  #secretsOf(name: string, field: string, value: unknown, isStored: boolean): Record<string, unknown> | undefined {
    if (value === undefined) return undefined;
    try {
      return withSecrets(value, this.#call.environment) as Record<string, unknown>;
    } catch (error) {
      if (!(error instanceof MissingSecret)) throw error;
      if (!isStored) this.#todo.push(`set the environment variable ${error.variable} (${field} of ${name})`);
      return undefined;
    }
  }

  async #signingSecret(api: Api, source: string, wanted: NonNullable<ConnectionEntry['webhookSecret']>): Promise<void> {
    const step = `webhook secret ${source}`;
    const { secrets } = await api.call('GET /api/v1/webhook-secrets');
    const before = secrets.find((each) => each.source === source);
    const isStored = before !== undefined && before.usable > 0 && !before.generated;
    const file = `${source}-webhook-secret`;
    const generated = wanted === 'generate';
    if (generated && isStored && this.#folder.read(file) === undefined)
      return this.#report(step, 'set before; unchanged');
    const resolved = generated
      ? { secret: this.#folder.readOrCreate(file, newSigningSecret) }
      : this.#secretsOf(source, 'webhookSecret', { secret: wanted }, isStored);
    if (resolved === undefined) return;
    const secret = String(resolved.secret);
    const keepPrevious = isStored;
    if (this.#stage.kind === 'prod') {
      await this.#operator.storeSigningSecret({ tenant: this.#file.tenant, source, secret, keepPrevious });
    } else {
      const params = { source };
      await api.call('PUT /api/v1/webhook-secrets/{source}', { params, body: { secret, keepPrevious } });
    }
    this.#report(step, isStored ? 'up to date' : 'set');
  }

  async #people(api: Api): Promise<void> {
    const { people } = await api.call('GET /api/v1/people', { query: { limit: '100' } });
    const { pending } = await api.call('GET /api/v1/changes/pending', { query: { limit: '100' } });
    for (const { id, ...wanted } of this.#file.people) {
      const before = people.find((person) => person.id === id);
      const step = `person ${id}`;
      if (before && isPartOf(wanted, before)) {
        this.#report(step, 'unchanged');
        continue;
      }
      const waiting = pending.find((change) => change.kind === 'person' && change.person === id && !change.expired);
      if (waiting) {
        this.#waits(step, waiting.changeId);
        continue;
      }
      const changed = await api.call('PUT /api/v1/people/{id}', { params: { id }, body: wanted });
      if ('pending' in changed) this.#waits(step, changed.pending.changeId);
      else this.#report(step, before ? 'changed' : 'added');
    }
  }

  #waits(step: string, changeId: string): void {
    this.#report(step, 'waits for a second owner');
    const second = this.#owners[1]?.id;
    const key = second === undefined ? '' : ` --key "$(cat ${this.#keyFile(second)})"`;
    this.#todo.push(
      `a second owner confirms ${step}: countersign changes confirm ${changeId} --url ${this.#stage.url}${key}`,
    );
  }

  /** The version of each workflow, by name. Publishing unchanged content makes no new version. */
  async #workflows(api: Api): Promise<Map<string, number>> {
    const versions = new Map<string, number>();
    for (const file of this.#file.workflows) {
      const text = readFile(join(this.#file.folder, file)).toString();
      const { name, version, warnings } = await api.call('POST /api/v1/workflows', { body: text });
      versions.set(name, version);
      this.#report(`workflow ${name}`, `version ${version}`);
      for (const warning of warnings) this.#call.terminal.note(printable(`  warning: ${warning}`));
    }
    return versions;
  }

  async #automations(api: Api, versions: ReadonlyMap<string, number>): Promise<void> {
    const { automations } = await api.call('GET /api/v1/automations', { query: { limit: '100' } });
    for (const { name, workflow, ...fields } of this.#file.automations) {
      const version = workflow === undefined ? undefined : versions.get(workflow);
      if (workflow !== undefined && version === undefined) {
        const known = [...versions.keys()].join(', ') || 'none';
        throw new Failure(EXIT.usage, `automation ${name}: ${workflow} is not in workflows, which have: ${known}`);
      }
      // The API says what is missing.
      const body = {
        ...fields,
        ...(workflow !== undefined && { workflow: { name: workflow, version } }),
      } as NonNullable<RequestFor<'PUT /api/v1/automations/{name}'>['body']>;
      const before = automations.find((each) => each.name === name);
      await api.call('PUT /api/v1/automations/{name}', { params: { name }, body });
      this.#report(`automation ${name}`, !before ? 'added' : isPartOf(body, before) ? 'unchanged' : 'changed');
    }
  }

  /** What people need to connect the other systems. */
  #handover(): void {
    const { stage, url } = this.#stage;
    const tenant = { tenant: this.#file.tenant, stage, url };
    const { slack, github, servicenow } = this.#file.connections;
    const files: [string, string][] = [
      ...(slack
        ? [
            ['slack-app-manifest.json', JSON.stringify(slackManifest(tenant), null, 2)] as [string, string],
            ['slack.md', slackText(tenant)] as [string, string],
          ]
        : []),
      ...(github
        ? [['github.md', githubText(tenant, this.#folder.file('github-webhook-secret'))] as [string, string]]
        : []),
      ...(servicenow
        ? [
            ['servicenow.md', servicenowText(tenant, this.#folder.file('servicenow-webhook-secret'))] as [
              string,
              string,
            ],
          ]
        : []),
    ];
    for (const [name, text] of files) writeFile(this.#folder.file(name), `${text.trimEnd()}\n`);
    if (files.length > 0) this.#report('instructions', files.map(([name]) => name).join(', '));
  }
}

/** The simulators of a local host are at its own URL. */
const withOwnUrl = <T>(value: T, url: string): T => {
  const text = JSON.stringify(value).replaceAll('{url}', url).replaceAll('{host}', new URL(url).host);
  return JSON.parse(text);
};

/** Whether a stored document already has every field that is wanted. */
function isPartOf(wanted: unknown, stored: unknown): boolean {
  if (Array.isArray(wanted)) return JSON.stringify(wanted) === JSON.stringify(stored);
  if (typeof wanted !== 'object' || wanted === null) return wanted === stored;
  return Object.entries(wanted).every(
    ([name, value]) => value === undefined || isPartOf(value, (stored as Record<string, unknown> | undefined)?.[name]),
  );
}
