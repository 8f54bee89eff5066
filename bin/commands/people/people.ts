import type { Person } from '../../../lambdas/people/people.ts';
import type { PersonChanged } from '../../client/api-client.ts';
import { Page } from '../../terminal/page.ts';
import { type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, UsageError } from '../failure.ts';
import { readNamed } from '../named-file.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';

const COLUMNS: readonly Column[] = [
  { title: 'PERSON' },
  { title: 'NAME', keeps: 'all' },
  { title: 'ROLE' },
  { title: 'GROUPS', keeps: 'all' },
  { title: 'COUNTS', keeps: 'all' },
];

/** Who may approve, and who says so. */
export const people: readonly Command[] = [
  {
    name: 'people list',
    takes: [],
    says: 'who is known, and what they may approve',
    options: pagingOptions('people'),
    async run(call) {
      const { items, nextCursor } = await readPages(call, async (asked) => {
        const page = await call.api().people(asked);
        return { items: page.people, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ people: items, nextCursor });
      else {
        const rows = items.map((each) => [
          each.id,
          each.name,
          roleOf(each),
          each.groups.join(', ') || '-',
          whose(each),
        ]);
        for (const line of table(COLUMNS, rows, call.terminal)) call.terminal.print(line);
        noteMore(call, nextCursor);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'people show',
    takes: ['ID'],
    says: 'one person: role, identities, and who gave them their rights',
    options: {},
    async run(call) {
      const person = await call.api().person(call.positional(0));
      if (call.json) call.printJson(person);
      else show(call, person);
      return EXIT.ok;
    },
  },
  {
    name: 'people put',
    takes: ['FILE'],
    says: 'add or change a person from a YAML or JSON file',
    details:
      'The file is the whole person:\n\n' +
      'id: ana\nname: Ana Ortiz\nrole: approver          # owner, admin, operator, approver, member, auditor\n' +
      'tier: high              # the highest risk they may approve\ngroups: [network]\n' +
      'identities: [slack:T0ACME/U0ANA, github:ana-dev]\n\n' +
      'In a prod stage, what widens who may approve waits until another owner confirms it.',
    options: {},
    async run(call) {
      const { id, ...body } = readNamed(call.positional(0), 'id', 'person');
      report(call, await call.api().savePerson(id, body), `${id} is saved`);
      return EXIT.ok;
    },
  },
  {
    name: 'people delete',
    takes: ['ID'],
    says: 'delete a person, and all rights of their API keys',
    options: {},
    async run(call) {
      const deleted = await call.api().deletePerson(call.positional(0));
      if (call.json) call.printJson(deleted);
      else call.terminal.print(printable(`${deleted.deleted} is deleted; nobody else can get this id`));
      return EXIT.ok;
    },
  },
  {
    name: 'people confirm',
    takes: ['ID'],
    says: 'vouch for a person whom somebody else added or changed',
    details:
      'A right to approve does not count for what the one wrote who gave it, until somebody independent confirms it.',
    options: {},
    async run(call) {
      const id = call.positional(0);
      report(call, await call.api().confirmPerson(id), `you vouch for ${id}`);
      return EXIT.ok;
    },
  },
  {
    name: 'people delegates',
    takes: ['ID'],
    says: 'say who may take the place of a person who is away',
    options: {
      add: { value: 'PERSON', many: true, says: 'may take their place, with all their rights' },
      remove: { value: 'PERSON', many: true, says: 'may not any more' },
    },
    async run(call) {
      const [id, add, remove] = [call.positional(0), call.texts('add'), call.texts('remove')];
      if (add.length + remove.length === 0) throw new UsageError('say whom with --add PERSON or --remove PERSON');
      const api = call.api();
      const before = ((await api.person(id)).delegates ?? []).map(({ person }) => person);
      const delegates = [...new Set([...before, ...add])].filter((person) => !remove.includes(person));
      report(
        call,
        await api.saveDelegates(id, delegates),
        `allowed to take the place of ${id}: ${delegates.join(', ') || 'nobody'}`,
      );
      return EXIT.ok;
    },
  },
];

const roleOf = ({ role, tier }: Person): string => (role === 'approver' ? `approver up to ${tier}` : role);

/** For whose writes somebody counts. */
function whose({ rights }: Person): string {
  if (!rights) return 'for all';
  const not = rights.dependsOn.length > 0 ? `not for ${rights.dependsOn.join(', ')}` : 'for all';
  return `${not}, from ${rights.countsFrom}`;
}

function report(call: Call, changed: PersonChanged, done: string): void {
  if (call.json) call.printJson(changed);
  else if ('pending' in changed) {
    const { widens, expiresAt } = changed.pending;
    call.terminal.print(printable(`waits for a second owner until ${expiresAt}, because it widens who may approve:`));
    for (const what of widens) call.terminal.print(printable(`  ${what}`));
    call.terminal.note(printable(changed.next));
  } else call.terminal.print(printable(done));
}

function show(call: Call, person: Person): void {
  const { id, name, identities, groups, away, delegates, rights } = person;
  const page = new Page(call.terminal);
  page.title(printable(`${name} (${id})`), roleOf(person));
  page.blank();
  page.field('groups', printable(groups.join(', ') || '-'));
  page.field('identities', printable(identities.join(', ') || '-'));
  if (away) page.field('away', printable(`until ${away.until}; ${away.delegate} takes their place`));
  if (delegates) page.field('delegates', printable(delegates.map((each) => each.person).join(', ') || '-'));
  if (rights) {
    const confirmed = rights.confirmedBy === undefined ? '' : `, confirmed by ${rights.confirmedBy}`;
    page.field('rights', printable(`by ${rights.changedBy} at ${rights.changedAt}${confirmed}`));
  }
  page.field('counts', printable(whose(person)));
}
