import { existsSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import type { Person } from '../../../lambdas/people/people.ts';
import type { DescribedStage } from '../../../lambdas/setup/bootstrap.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call } from '../command.ts';
import { UsageError } from '../failure.ts';
import { writeFile } from '../read-file.ts';
import type { ConnectionEntry } from './tenant-file.ts';

/** A sample whose only write is allowed without an approval. */
const SAMPLE_WORKFLOW = 'workflows/label-new-issue.yaml';
const sampleFor = (file: string) => ({
  workflows: [relative(dirname(file), SAMPLE_WORKFLOW)],
  automations: [
    { name: 'label-new-issue', trigger: { source: 'github', event: 'issues.opened' }, workflow: 'label-new-issue' },
  ],
});

type Owner = Pick<Person, 'id' | 'name' | 'role' | 'identities'>;
/** The simulated workspace of initech, the only tenant of the local stage that is not set up. */
const LOCAL_SLACK_TEAM = 'T300INITECH';

/** Why an answer cannot be used; undefined if it can. */
type Check = (answer: string) => string | undefined;

/**
 * Asks for everything but secrets, and writes the file of `tenant add`. Secrets are named as environment variables. Each
 * answer is checked at once and asked for again, so a mistake loses nothing; the file is written after the last answer.
 */
export async function askForTenant(call: Call, stage: DescribedStage, wanted = ''): Promise<string> {
  const questions = new Questions(call);
  const tenant = await questions.tenant(stage);
  const file = wanted || `${tenant}.tenant.yaml`;
  if (existsSync(file)) {
    if (await questions.isYes(`${file} exists; continue with it`)) return file;
    throw new UsageError(`nothing was changed; delete ${file}, or pass another file: countersign tenant add FILE`);
  }
  const people = await questions.owners(stage.kind);
  const connections = await questions.connections(tenant, stage.stage === 'local');
  const settings = connections.slack && {
    approvalsChannel: await questions.ask('channel for approvals', { byDefault: '#approvals' }),
  };
  const hasSample = connections.github !== undefined && existsSync(SAMPLE_WORKFLOW);
  const sample = hasSample && (await questions.isYes(`publish the sample ${SAMPLE_WORKFLOW}, which labels new issues`));
  const { stringify } = await import('yaml');
  writeFile(
    file,
    stringify({ tenant, people, connections, ...(settings && { settings }), ...(sample && sampleFor(file)) }),
  );
  call.terminal.print(`wrote ${file}; it contains no secrets`);
  return file;
}

class Questions {
  readonly #call: Call;

  constructor(call: Call) {
    this.#call = call;
  }

  /** Asks until the answer can be used. */
  async ask(question: string, { byDefault = '', check }: { byDefault?: string; check?: Check } = {}): Promise<string> {
    for (;;) {
      const given = await this.#call.terminal.ask(`${question}${byDefault && ` [${byDefault}]`}: `);
      if (given === undefined) {
        throw new UsageError('countersign tenant add requires FILE: there is no terminal to ask at');
      }
      const answer = given.trim() || byDefault;
      const problem = check?.(answer);
      if (problem === undefined) return answer;
      this.#call.terminal.note(printable(`  ${problem}`));
    }
  }

  async isYes(question: string): Promise<boolean> {
    const check = (answer: string) => (/^(y|yes|n|no)$/i.test(answer) ? undefined : 'answer y or n');
    return /^y/i.test(await this.ask(`${question} (y/n)`, { byDefault: 'y', check }));
  }

  /** By default the only tenant that is not set up yet. */
  tenant({ stage, tenants }: DescribedStage): Promise<string> {
    const names = tenants.map(({ tenant }) => tenant);
    const [first, ...others] = tenants.filter(({ owners }) => owners.length === 0);
    const byDefault = others.length === 0 ? first?.tenant : undefined;
    return this.ask(`tenant (${names.join(', ')})`, {
      ...(byDefault !== undefined && { byDefault }),
      check(answer) {
        if (names.includes(answer)) return undefined;
        if (answer === '') return `name one of ${names.join(', ')}`;
        return `the stage ${stage} has no tenant "${answer}"; add it to its tenants in cdk.json and deploy first`;
      },
    });
  }

  async owners(kind: DescribedStage['kind']): Promise<Owner[]> {
    const { Person, IDENTITY_SYSTEMS } = await import('../../../lambdas/people/people.ts');
    const owners: Owner[] = [];
    const checkId = (answer: string) => {
      if (!Person.shape.id.safeParse(answer).success) return 'use lower-case letters, digits and . _ -, like olivia';
      return owners.some(({ id }) => id === answer) ? `${answer} is the first owner; name another person` : undefined;
    };
    const split = (answer: string) => answer.split(',').flatMap((each) => each.trim() || []);
    const checkIdentities = (answer: string) => {
      const wrong = split(answer).find(
        (each) =>
          !Person.shape.identities.safeParse([each]).success || !IDENTITY_SYSTEMS.includes(each.split(':')[0] ?? ''),
      );
      return wrong && `"${wrong}" is not an identity; write system:name, with ${IDENTITY_SYSTEMS.join(', ')}`;
    };
    const secondIs = kind === 'prod' ? 'needed in prod; empty for none' : 'empty for none';
    for (const which of ['first', 'second'] as const) {
      const isOptional = which === 'second';
      const id = await this.ask(`id of the ${which} owner (${isOptional ? secondIs : 'like olivia'})`, {
        check: (answer) => (answer === '' && isOptional ? undefined : checkId(answer)),
      });
      if (id === '') break;
      const name = await this.ask(`name of ${id}`, { byDefault: id });
      const identities = await this.ask(
        `identities of ${id}, separated by commas (email:${id}@example.com, github:${id}, slack:T0ACME/U0ACME)`,
        { check: checkIdentities },
      );
      owners.push({ id, name, role: 'owner', identities: split(identities) });
    }
    return owners;
  }

  async connections(tenant: string, isLocal: boolean): Promise<Partial<Record<string, ConnectionEntry>>> {
    const connections: Partial<Record<string, ConnectionEntry>> = {};
    if (await this.isYes('connect GitHub'))
      connections.github = isLocal ? simulated('github', tenant) : await this.#github();
    if (await this.isYes('connect ServiceNow')) {
      connections.servicenow = isLocal ? simulated('servicenow', tenant) : await this.#servicenow(tenant);
    }
    if (await this.isYes('connect Slack')) connections.slack = await this.#slack(isLocal, tenant);
    return connections;
  }

  async #github(): Promise<ConnectionEntry> {
    const baseUrl = await this.ask('address of the GitHub API', {
      byDefault: 'https://api.github.com',
      check: (answer) => (/^https:\/\/[^/\s]+/.test(answer) ? undefined : 'use an address that begins with https://'),
    });
    return {
      baseUrl,
      instance: new URL(baseUrl).hostname.replace(/^api\./, ''),
      credential: { token: { env: 'GITHUB_TOKEN' } },
      planCredential: { token: { env: 'GITHUB_READ_TOKEN' } },
      webhookSecret: 'generate',
    };
  }

  async #servicenow(tenant: string): Promise<ConnectionEntry> {
    const instance = await this.ask('name of the ServiceNow instance (acme of acme.service-now.com)', {
      byDefault: tenant,
      check: (answer) => (/^[a-z0-9-]+$/.test(answer) ? undefined : 'use only the part before .service-now.com'),
    });
    return {
      baseUrl: `https://${instance}.service-now.com`,
      instance,
      credential: { username: 'countersign', password: { env: 'SERVICENOW_PASSWORD' } },
      planCredential: { username: 'countersign-read', password: { env: 'SERVICENOW_READ_PASSWORD' } },
      webhookSecret: 'generate',
    };
  }

  async #slack(isLocal: boolean, tenant: string): Promise<ConnectionEntry> {
    const instance = await this.ask('team id of the Slack workspace (begins with T or E)', {
      ...(isLocal && { byDefault: LOCAL_SLACK_TEAM }),
      check: (answer) => (/^[TE][A-Z0-9]{4,}$/.test(answer) ? undefined : 'use the id, like T0ACME123, not the name'),
    });
    if (isLocal) {
      return { ...simulated('slack', tenant), instance, webhookSecret: `local-${tenant}-slack-signing-secret` };
    }
    return {
      baseUrl: 'https://slack.com',
      instance,
      credential: { botToken: { env: 'SLACK_BOT_TOKEN' } },
      webhookSecret: { env: 'SLACK_SIGNING_SECRET' },
    };
  }
}

/** The simulators of the local host accept any credential, and read-only ones for plans. */
function simulated(system: 'github' | 'servicenow' | 'slack', tenant: string): ConnectionEntry {
  const [own, readOnly] = [`local-${tenant}-${system}`, `local-read-only-${tenant}-${system}`];
  const credential = (secret: string) =>
    system === 'github'
      ? { token: secret }
      : system === 'slack'
        ? { botToken: secret }
        : { username: 'countersign', password: secret };
  return {
    baseUrl: `{url}/_sim/${system}`,
    instance: tenant,
    credential: credential(own),
    planCredential: credential(readOnly),
    webhookSecret: 'generate',
  };
}
