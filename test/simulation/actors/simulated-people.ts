import type { Person } from '../../../lambdas/people/people.ts';
import type { Provenance } from '../../../lambdas/people/provenance.ts';

const FAR_FUTURE = '2099-01-01T00:00:00.000Z';

/** The ServiceNow name of the person who reports the incidents. */
export const REPORTER = 'max.m';
/** The author of the workflows. */
export const AUTHOR = 'wanda';

/** People who may decide, people who may not but try, and people with a delegate. */
export const PEOPLE: readonly Person[] = [
  someone('ana', 'owner', { groups: ['ops'], identities: ['slack:T1/UANA', 'slack:acme/UANA', 'github:ana-dev'] }),
  someone('bo', 'approver', { tier: 'high', groups: ['ops'] }),
  someone('ivy', 'admin', { groups: ['ops', 'desk'] }),
  someone('cy', 'approver', { groups: ['ops'] }),
  someone('dee', 'approver', { tier: 'low', groups: ['ops'] }),
  someone('eli', 'member', {}),
  someone('opal', 'operator', {}),
  someone('fay', 'approver', {
    groups: ['ops'],
    away: { until: FAR_FUTURE, delegate: 'eli' },
    delegates: [{ person: 'eli', rights: givenBy('ana') }],
  }),
  // Named a delegate without the permission of an owner.
  someone('joe', 'approver', { tier: 'high', groups: ['ops'], away: { until: FAR_FUTURE, delegate: 'dee' } }),
  // Created by the author of the workflows: their votes do not count for writes of these workflows.
  someone('pip', 'approver', { tier: 'high', groups: ['ops'], rights: givenBy('wanda') }),
  someone('quin', 'admin', { groups: ['ops'], rights: givenBy('pip', 'wanda') }),
  // Each names the other as delegate: nobody decides for them, and the lookup must end.
  someone('gus', 'approver', { tier: 'high', away: { until: FAR_FUTURE, delegate: 'hal' } }),
  someone('hal', 'approver', { tier: 'high', away: { until: FAR_FUTURE, delegate: 'gus' } }),
  someone('max', 'admin', { groups: ['ops'], identities: [`servicenow:${REPORTER}`, 'slack:T1/UMAX'] }),
  someone(AUTHOR, 'owner', { groups: ['ops'], away: { until: FAR_FUTURE, delegate: 'cy' } }),
];

function givenBy(changedBy: string, ...dependsOn: string[]): Provenance {
  const at = '2020-01-01T00:00:00.000Z';
  return { changedBy, changedAt: at, countsFrom: at, dependsOn: [changedBy, ...dependsOn] };
}

function someone(id: string, role: Person['role'], differing: Partial<Person>): Person {
  return { id, name: id, role, tier: 'medium', groups: [], identities: [], ...differing };
}

export const personById = (id: string): Person | undefined => PEOPLE.find((person) => person.id === id);
