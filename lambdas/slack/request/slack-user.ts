import { type Person, personBehind } from '../../people/people.ts';
import type { Definitions } from '../../pipeline/definitions.ts';

export interface KnownPeople {
  definitions: Pick<Definitions, 'people'>;
}

/** The person with a Slack identity; undefined if no person has it. */
export async function findSlackPerson(
  { definitions }: KnownPeople,
  tenant: string,
  identity: string,
): Promise<Person | undefined> {
  const people = await definitions.people(tenant, { fresh: true });
  const id = personBehind(people, identity);
  return people.find((person) => person.id === id);
}

export const unknownUser = (identity: string): string =>
  `Countersign does not know you. Ask an admin to add ${identity} to your person, then try again.`;
