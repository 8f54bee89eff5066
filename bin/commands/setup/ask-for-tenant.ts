import { existsSync } from 'node:fs';
import type { Call } from '../command.ts';
import { UsageError } from '../failure.ts';
import { writeFile } from '../read-file.ts';

/** Asks for everything but secrets, and writes the file of `tenant add`. Secrets are named as environment variables. */
export async function askForTenant(call: Call): Promise<string> {
  const ask = async (question: string, fallback = ''): Promise<string> => {
    const answer = await call.terminal.ask(`${question}${fallback ? ` [${fallback}]` : ''}: `);
    if (answer === undefined)
      throw new UsageError('countersign tenant add requires FILE: there is no terminal to ask at');
    return answer.trim() || fallback;
  };
  const isYes = async (question: string) => (await ask(`${question} (y/n)`, 'y')).startsWith('y');

  const tenant = await ask('tenant, as in cdk.json');
  if (tenant === '') throw new UsageError('nothing was changed: the name of the tenant is required');
  const file = `${tenant}.tenant.yaml`;
  if (existsSync(file)) {
    if (await isYes(`${file} exists; use it`)) return file;
    throw new UsageError(`nothing was changed; pass the file: countersign tenant add ${file}`);
  }
  const owners: object[] = [];
  for (const which of ['first', 'second']) {
    const id = await ask(`id of the ${which} owner (like olivia)${which === 'second' ? ', empty for none' : ''}`);
    if (id === '') break;
    const identities = (await ask('identities, separated by commas (github:olivia, slack:T0ACME/U0OLIVIA)')).split(',');
    owners.push({
      id,
      name: await ask('name', id),
      role: 'owner',
      identities: identities.map((each) => each.trim()).filter(Boolean),
    });
  }
  const connections: Record<string, object> = {};
  if (await isYes('connect GitHub')) {
    connections.github = {
      baseUrl: await ask('address of the API', 'https://api.github.com'),
      instance: 'github.com',
      credential: { token: { env: 'GITHUB_TOKEN' } },
      planCredential: { token: { env: 'GITHUB_READ_TOKEN' } },
      webhookSecret: 'generate',
    };
  }
  if (await isYes('connect ServiceNow')) {
    const instance = await ask('name of the instance (acme of acme.service-now.com)', tenant);
    connections.servicenow = {
      baseUrl: `https://${instance}.service-now.com`,
      instance,
      credential: { username: 'countersign', password: { env: 'SERVICENOW_PASSWORD' } },
      planCredential: { username: 'countersign-read', password: { env: 'SERVICENOW_READ_PASSWORD' } },
      webhookSecret: 'generate',
    };
  }
  if (await isYes('connect Slack')) {
    connections.slack = {
      baseUrl: 'https://slack.com',
      instance: await ask('team id of the workspace (T…)'),
      credential: { botToken: { env: 'SLACK_BOT_TOKEN' } },
      webhookSecret: { env: 'SLACK_SIGNING_SECRET' },
    };
  }
  const { stringify } = await import('yaml');
  const settings = connections.slack && { approvalsChannel: await ask('channel for approvals', '#approvals') };
  writeFile(file, stringify({ tenant, people: owners, connections, ...(settings && { settings }) }));
  call.terminal.print(`wrote ${file}; it contains no secrets`);
  return file;
}
