import * as z from 'zod';
import { RISKS } from '../connectors/connector.ts';
import { Provenance } from './provenance.ts';
import { ROLES } from './rights.ts';

/** What an identity starts with: where events come from, and how people sign in. */
export const IDENTITY_SYSTEMS: readonly string[] = ['github', 'servicenow', 'slack', 'generic', 'email', 'oidc'];

const IGNORING_CASE = ['github:', 'servicenow:', 'email:'];

/**
 * The canonical form of an identity: without spaces around the name, and in lower case where the system ignores case.
 * GitHub and ServiceNow ignore the case of logins, mail servers that of addresses; Slack and OIDC issuers do not ignore
 * the case of their ids.
 */
export function identityForm(identity: string): string {
  const [, system = '', name = identity] = /^([a-z]+:)([\s\S]*)$/.exec(identity.trim()) ?? [];
  const spelled = `${system}${name.trim()}`;
  return IGNORING_CASE.includes(system) ? spelled.toLowerCase() : spelled;
}

const Identity = z
  .string()
  .max(500)
  .regex(/^\s*[a-z]+:\s*\S/, 'write an identity as system:name, like github:ana-dev')
  .transform(identityForm);

/** A person of a tenant, with their identities in other systems. */
export const Person = z.strictObject({
  /** `ana`: the name in votes, makers and events. */
  id: z.string().regex(/^[a-z][a-z0-9._-]{0,62}$/),
  name: z.string().max(100),
  role: z.enum(ROLES),
  /** The highest tier an approver may approve; owners and admins may approve any. */
  tier: z.enum(RISKS).default('medium'),
  groups: z.array(z.string().max(100)).max(100).default([]),
  /**
   * `slack:T0ACME/U0ANA`, `github:ana-dev`, `servicenow:ana.m`: each belongs to one person only. People sign in as
   * `email:ana@example.com` or `oidc:https://login.example.com#subject`.
   */
  identities: z.array(Identity).max(100).default([]),
  /** While the person is away, the delegate may decide on their behalf. */
  away: z.strictObject({ until: z.iso.datetime(), delegate: z.string().max(63) }).optional(),
  /** People whom an owner allowed to decide on this person's behalf, though their own role has fewer rights. */
  delegates: z.array(z.strictObject({ person: z.string(), rights: Provenance })).optional(),
  /** Who last extended what this person may approve. */
  rights: Provenance.optional(),
});
export type Person = z.infer<typeof Person>;

/** `machine:deploy@olivia`: a program with an API key of Olivia's. No person can have such an id. */
const MACHINE = /^machine:[^@]+@(.+)$/;

/** The name under which a program acts. Its actions are those of the person who created its key. */
export const machineOf = (key: string, createdBy: string): string =>
  `machine:${key}@${MACHINE.exec(createdBy)?.[1] ?? createdBy}`;

/** The person with this identity; an identity without a person is returned as it is. */
export function personBehind(people: readonly Person[], identity: string): string {
  const wanted = MACHINE.exec(identity)?.[1] ?? identityForm(identity);
  const form = identityForm(wanted);
  return people.find((person) => person.id === wanted || formsOf(person).includes(form))?.id ?? wanted;
}

/** Compares canonical forms: rows that an operator wrote directly may have another spelling. */
export const hasIdentity = (person: Pick<Person, 'identities'>, identity: string): boolean =>
  formsOf(person).includes(identityForm(identity));

/** The canonical forms of lists of identities, which never change. A worker looks for the same people in every call. */
const FORMS = new WeakMap<readonly string[], string[]>();

function formsOf({ identities }: Pick<Person, 'identities'>): readonly string[] {
  const known = FORMS.get(identities);
  if (known) return known;
  const forms = identities.map(identityForm);
  FORMS.set(identities, forms);
  return forms;
}

/** The sources of the values that a run writes. */
interface Contributions {
  /** `makers`: the people who created or changed the subject of the event, by their names in its source. */
  trigger: { source: string; makers?: readonly string[] };
  enrichment?: { actor?: string };
  workflow: { author?: string; calls?: readonly { author?: string }[] };
  /** People who changed the run later: by a signal or a rollback. */
  duringRun?: readonly string[];
}

/** In triggers of these sources, makers are the tenant's own people and programs, by id. */
const PEOPLE_OF_TENANT: readonly string[] = ['api', 'manual', 'schedule'];

/** The makers of a run's writes, each as the person with that identity. Empty names are ignored. */
export function makersOf(people: readonly Person[], contributions: Contributions): string[] {
  const { trigger, enrichment, workflow, duringRun = [] } = contributions;
  const atSource = [enrichment?.actor, ...(trigger.makers ?? [])].flatMap((name) =>
    isBlank(name) ? [] : [PEOPLE_OF_TENANT.includes(trigger.source) ? name : `${trigger.source}:${name}`],
  );
  const authors = [workflow, ...(workflow.calls ?? [])].map(({ author }) => author);
  const identities = [...atSource, ...authors, ...duringRun].filter((identity) => !isBlank(identity));
  return [...new Set(identities.map((identity) => personBehind(people, identity)))];
}

const isBlank = (name: string | undefined): name is undefined => name === undefined || name.trim() === '';
