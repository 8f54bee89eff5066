import { type Person, personBehind } from '../../people/people.ts';
import type { Definitions } from '../../pipeline/definitions.ts';

export interface KnownPeople {
  definitions: Pick<Definitions, 'people'>;
}

/** The person behind a Slack identity; undefined for one that nobody has claimed. */
export async function personSpeaking(
  { definitions }: KnownPeople,
  tenant: string,
  identity: string,
): Promise<Person | undefined> {
  const people = await definitions.people(tenant, { fresh: true });
  const id = personBehind(people, identity);
  return people.find((person) => person.id === id);
}

export const notKnown = (identity: string): string =>
  `You are not known here. Ask an admin to add ${identity} to your person, then try again.`;
