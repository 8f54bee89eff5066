import { dirname, resolve } from 'node:path';
import * as z from 'zod';
import { nameProblem } from '../../../lambdas/connectors/credential-form.ts';
import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import { Person } from '../../../lambdas/people/people.ts';
import { TenantSettings } from '../../../lambdas/run/settings/caps.ts';
import { EXIT, Failure } from '../failure.ts';
import { readFile } from '../read-file.ts';

/** A secret is named, not written: `{ env: GITHUB_TOKEN }` or `{ file: key.pem }`. A text is accepted too. */
const Secret = z.union([z.string(), z.strictObject({ env: z.string() }), z.strictObject({ file: z.string() })]);

const Connection = z.strictObject({
  baseUrl: z.string(),
  instance: z.string(),
  allowedHosts: z.array(z.string()).optional(),
  allowedTables: z.array(z.string()).optional(),
  credential: z.record(z.string(), z.unknown()).optional(),
  planCredential: z.record(z.string(), z.unknown()).optional(),
  /** The secret that the system signs its requests with. `generate`: the command makes one. */
  webhookSecret: z.union([z.literal('generate'), Secret]).optional(),
});
export type ConnectionEntry = z.infer<typeof Connection>;

/** What is not in the file stays as it is. */
const PersonEntry = Person.omit({ delegates: true, rights: true }).extend({
  tier: Person.shape.tier.unwrap().optional(),
  groups: Person.shape.groups.unwrap().optional(),
});

const AutomationEntry = z.looseObject({ name: z.string(), workflow: z.string().optional() });

/** Everything that `tenant add` sets up. README, "Deploy", has an example. */
const ConnectionName = z.string().superRefine((name, context) => {
  const message = nameProblem(name);
  if (message !== undefined) context.addIssue({ code: 'custom', message });
});

const TenantFile = z.strictObject({
  tenant: z.string(),
  people: z.array(PersonEntry).min(1),
  connections: z.record(ConnectionName, Connection).default({}),
  settings: TenantSettings.omit({ counterShards: true }).optional(),
  /** Workflow files, relative to this file. */
  workflows: z.array(z.string()).default([]),
  /** As for `automations put`, with the name of a workflow above instead of a version, or with instructions. */
  automations: z.array(AutomationEntry).default([]),
});
export type TenantFile = z.infer<typeof TenantFile>;

const KNOWN_FIELDS = Object.keys(TenantFile.shape);

export async function readTenantFile(file: string): Promise<TenantFile & { folder: string }> {
  const { parse } = await import('yaml');
  let content: unknown;
  try {
    content = parse(readFile(file).toString());
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw new Failure(EXIT.usage, `${file}: ${(cause as Error).message}`, { cause });
  }
  const parsed = TenantFile.safeParse(content);
  if (!parsed.success) throw new Failure(EXIT.usage, `${file}:\n${parsed.error.issues.flatMap(problems).join('\n')}`);
  const owners = parsed.data.people.filter(({ role }) => role === 'owner');
  if (owners.length === 0) throw new Failure(EXIT.usage, `${file}: people: at least one person needs the role owner`);
  return { ...parsed.data, folder: dirname(resolve(file)) };
}

function problems(issue: z.core.$ZodIssue): string[] {
  const at = issue.path.join('.');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => `  ${at ? `${at}: ` : ''}unknown field "${key}"${didYouMean(key, KNOWN_FIELDS)}`);
  }
  return [`  ${at || 'the file'}: ${issue.message.replace(/^Invalid[^:]*: /, '')}`];
}
