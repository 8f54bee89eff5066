import type { RequestFor } from '../../../client/api-client.ts';
import type { Person } from '../../../lambdas/people/people.ts';
import { may } from '../../../lambdas/people/rights.ts';
import type { PersonChanged } from '../../client/api-client.ts';
import { Page } from '../../terminal/page.ts';
import { type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, UsageError } from '../failure.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';
import { readDefinition } from '../read-file.ts';

type PersonFields = RequestFor<'PUT /api/v1/people/{id}'>['body'];

const COLUMNS: readonly Column[] = [
  { title: 'PERSON' },
  { title: 'NAME', shrink: 'wrap' },
  { title: 'ROLE' },
  { title: 'GROUPS', shrink: 'wrap' },
  { title: 'APPROVALS COUNT', shrink: 'wrap' },
];

export const people: readonly Command[] = [
  {
    name: 'people list',
    args: [],
    description: 'list people, their roles and what they may approve',
    options: pagingOptions('people'),
    async run(call) {
      const { items, nextCursor } = await readPages(call, async (query) => {
        const page = await call.api().call('GET /api/v1/people', { query });
        return { items: page.people, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ people: items, nextCursor });
      else {
        const rows = items.map((each) => [
          each.id,
          each.name,
          roleOf(each),
          each.groups.join(', ') || '-',
          approvalsCount(each),
        ]);
        for (const line of table(COLUMNS, rows, call.terminal)) call.terminal.print(line);
        noteMore(call, nextCursor);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'people show',
    args: ['ID'],
    description: 'show a person: role, identities, who granted rights',
    options: {},
    async run(call) {
      const person = await call.api().call('GET /api/v1/people/{id}', { params: { id: call.arg(0) } });
      if (call.json) call.printJson(person);
      else show(call, person);
      return EXIT.ok;
    },
  },
  {
    name: 'people put',
    args: ['FILE'],
    description: 'add or change a person from a YAML or JSON file',
    details:
      'The file contains the complete person:\n\n' +
      'id: ana\nname: Ana Ortiz\nrole: approver          # owner, admin, operator, approver, member, auditor\n' +
      'tier: high              # the highest risk they may approve\ngroups: [network]\n' +
      'identities: [slack:T0ACME/U0ANA, github:ana-dev]\n\n' +
      'In a prod stage, a change that extends who may approve must be confirmed by a second owner.',
    options: {},
    async run(call) {
      const { id, fields: body } = await readDefinition<PersonFields>(call.arg(0), 'id', 'a person');
      printChanged(call, await call.api().call('PUT /api/v1/people/{id}', { params: { id }, body }), `saved ${id}`);
      return EXIT.ok;
    },
  },
  {
    name: 'people delete',
    args: ['ID'],
    description: 'delete a person and revoke the rights of their API keys',
    options: {},
    async run(call) {
      const deleted = await call.api().call('DELETE /api/v1/people/{id}', { params: { id: call.arg(0) } });
      if (call.json) call.printJson(deleted);
      else call.terminal.print(printable(`deleted ${deleted.deleted}; the id cannot be used again`));
      return EXIT.ok;
    },
  },
  {
    name: 'people confirm',
    args: ['ID'],
    description: 'confirm the rights that somebody else gave a person',
    details:
      'Until an independent person confirms a right to approve, it does not count for writes of the person who granted it.',
    options: {},
    async run(call) {
      const id = call.arg(0);
      printChanged(
        call,
        await call.api().call('POST /api/v1/people/{id}/confirm', { params: { id } }),
        `confirmed ${id}`,
      );
      return EXIT.ok;
    },
  },
  {
    name: 'people delegates',
    args: ['ID'],
    description: 'set who may act for a person who is away',
    options: {
      add: { value: 'PERSON', repeatable: true, description: 'may act for the person, with all their rights' },
      remove: { value: 'PERSON', repeatable: true, description: 'may no longer act for the person' },
    },
    async run(call) {
      const [id, add, remove] = [call.arg(0), call.options('add'), call.options('remove')];
      if (add.length + remove.length === 0) throw new UsageError('--add PERSON or --remove PERSON is required');
      const api = call.api();
      const params = { id };
      const { delegates: delegatesBefore } = await api.call('GET /api/v1/people/{id}', { params });
      const before = (delegatesBefore ?? []).map(({ person }) => person);
      const delegates = [...new Set([...before, ...add])].filter((person) => !remove.includes(person));
      printChanged(
        call,
        await api.call('PUT /api/v1/people/{id}/delegates', { params, body: { delegates } }),
        `delegates of ${id}: ${delegates.join(', ') || 'none'}`,
      );
      return EXIT.ok;
    },
  },
];

const roleOf = ({ role, tier }: Person): string => (role === 'approver' ? `approver up to ${tier}` : role);

/** The writes for which this person's approval counts. */
function approvalsCount({ role, rights }: Person): string {
  if (!may(role, 'approvals:decide')) return '-';
  if (!rights) return 'for all writes';
  const scope = rights.dependsOn.length > 0 ? `not for writes of ${rights.dependsOn.join(', ')}` : 'for all writes';
  return `${scope}, from ${rights.countsFrom}`;
}

function printChanged(call: Call, changed: PersonChanged, done: string): void {
  if (call.json) call.printJson(changed);
  else if ('pending' in changed) {
    const { widens, expiresAt } = changed.pending;
    call.terminal.print(
      printable(`a second owner must confirm this change until ${expiresAt}, because it extends who may approve:`),
    );
    for (const each of widens) call.terminal.print(printable(`  ${each}`));
    call.terminal.note(printable(changed.next));
  } else call.terminal.print(printable(done));
}

function show(call: Call, person: Person): void {
  const { id, name, identities, groups, away, delegates, rights } = person;
  const page = new Page(call.terminal);
  page.title(printable(`${name} (${id})`), { text: roleOf(person) });
  page.blank();
  page.field('groups', printable(groups.join(', ') || '-'));
  page.field('identities', printable(identities.join(', ') || '-'));
  if (away) page.field('away', printable(`until ${away.until}; ${away.delegate} acts for them`));
  if (delegates) page.field('delegates', printable(delegates.map((each) => each.person).join(', ') || '-'));
  if (rights) {
    const confirmed = rights.confirmedBy === undefined ? '' : `, confirmed by ${rights.confirmedBy}`;
    page.field('rights', printable(`granted by ${rights.changedBy} at ${rights.changedAt}${confirmed}`));
  }
  page.field('approvals', printable(approvalsCount(person)));
}
