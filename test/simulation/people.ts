import type { Person } from '../../lambdas/people/people.ts';
import type { Provenance } from '../../lambdas/people/provenance.ts';

const FAR_FUTURE = '2099-01-01T00:00:00.000Z';

/** Raises the incidents, under this name of ServiceNow's. */
export const REPORTER = 'max.m';
/** Wrote the workflows. */
export const AUTHOR = 'wanda';

/** People of every kind: those who may decide, those who may only try, and those whose place another takes. */
export const PEOPLE: readonly Person[] = [
  someone('ana', 'owner', { groups: ['ops'], identities: ['slack:T1/UANA', 'github:ana-dev'] }),
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
  // Has named a delegate whom no owner allowed.
  someone('joe', 'approver', { tier: 'high', groups: ['ops'], away: { until: FAR_FUTURE, delegate: 'dee' } }),
  // Created by the author of the workflows: their votes do not count for writes of these workflows.
  someone('pip', 'approver', { tier: 'high', groups: ['ops'], rights: givenBy('wanda') }),
  someone('quin', 'admin', { groups: ['ops'], rights: givenBy('pip', 'wanda') }),
  // Each names the other: nobody takes their places, and nothing goes round in circles.
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

export const personOf = (id: string): Person | undefined => PEOPLE.find((person) => person.id === id);
