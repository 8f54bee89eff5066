import type { ResponseFrom } from '../../../client/api-client.ts';
import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import { ROLES, type Role } from '../../../lambdas/people/rights.ts';
import { type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, UsageError } from '../failure.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';

const COLUMNS: readonly Column[] = [
  { title: 'NAME' },
  { title: 'OF' },
  { title: 'ROLE' },
  { title: 'CREATED', shrink: 'wrap' },
  { title: 'EXPIRES' },
  { title: 'LAST USED' },
];
const DAY_MS = 24 * 60 * 60 * 1000;
const DAY = 'YYYY-MM-DD'.length;

type KeyView = ResponseFrom<'GET /api/v1/api-keys'>['apiKeys'][number];

export const keys: readonly Command[] = [
  {
    name: 'keys create',
    args: ['NAME'],
    description: 'create an API key, which is shown once',
    details: [
      'A key has at most your rights, and loses those that its person loses.',
      'A key for another person requires the right api-keys:write and may only read, because you know it too.',
    ].join('\n'),
    options: {
      role: { value: 'ROLE', description: `${ROLES.join(', ')} (default: yours)` },
      machine: { description: 'for a program: requires the right api-keys:write and --role' },
      person: { value: 'ID', description: 'for another person, to read only' },
      days: { value: 'N', description: 'days until it expires, 1 to 366 (default 90)' },
    },
    async run(call) {
      const body = {
        name: call.arg(0),
        role: roleOf(call),
        machine: call.isSet('machine'),
        person: call.option('person'),
        expiresAt: expiryOf(call),
      };
      const created = await call.api().call('POST /api/v1/api-keys', { body });
      if (call.json) call.printJson(created);
      else {
        // Alone on stdout, so that a script can store it.
        call.terminal.print(created.key);
        const of = `${created.role}, of ${created.person}, until ${created.expiresAt ?? 'revoked'}`;
        call.terminal.note(printable(`${created.name}: ${of}. Store it now: it cannot be shown again`));
      }
      return EXIT.ok;
    },
  },
  {
    name: 'keys list',
    args: [],
    description: 'list API keys: your own or, with the right, all',
    details:
      'Keys that the first release created are listed only after their next use, even if that request is refused.',
    options: { ...pagingOptions('keys'), person: { value: 'ID', description: 'only keys of this person' } },
    async run(call) {
      const { items, nextCursor } = await readPages(call, async (query) => {
        const person = call.option('person');
        const page = await call.api().call('GET /api/v1/api-keys', { query: { ...query, person } });
        return { items: page.apiKeys, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ apiKeys: items, nextCursor });
      else if (items.length === 0) call.terminal.note('no API keys');
      else {
        for (const line of table(COLUMNS, printable(items.map(rowOf)), call.terminal)) call.terminal.print(line);
        const [refused] = items.filter(({ holder }) => holder === 'none');
        if (refused) {
          call.terminal.note(
            '\nA key of nobody is refused: it belongs to no person and is not marked as a key of a program. To replace the key of a program:',
          );
          call.terminal.note(
            '  countersign keys create NAME --machine --role ROLE, then use that key and revoke the old one:',
          );
          call.terminal.note(printable(`  countersign keys revoke ${refused.name}`));
        }
        noteMore(call, nextCursor);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'keys revoke',
    args: ['NAME'],
    description: 'revoke an API key at once',
    options: {},
    async run(call) {
      const { revoked } = await call.api().call('DELETE /api/v1/api-keys/{name}', { params: { name: call.arg(0) } });
      if (call.json) call.printJson({ revoked });
      else call.terminal.print(printable(`revoked ${revoked}; it is refused from now on`));
      return EXIT.ok;
    },
  },
];

function rowOf({
  name,
  person,
  holder,
  role,
  createdBy,
  createdAt,
  expiresAt,
  expired,
  lastUsedAt,
}: KeyView): string[] {
  const created = createdAt === undefined ? '-' : `${createdAt.slice(0, DAY)} by ${createdBy ?? '-'}`;
  const expires = expired ? `expired ${expiresAt?.slice(0, DAY)}` : (expiresAt?.slice(0, DAY) ?? 'never');
  const of = holder === 'none' ? `nobody (${person})` : person;
  return [name, of, role, created, expires, lastUsedAt?.slice(0, DAY) ?? '-'];
}

function roleOf(call: Call): Role | undefined {
  const given = call.option('role');
  if (given === undefined) return undefined;
  const role = ROLES.find((each) => each === given);
  if (role) return role;
  throw new UsageError(
    `--role "${given}" is not a role${didYouMean(given, ROLES) || `; there are: ${ROLES.join(', ')}`}`,
  );
}

function expiryOf(call: Call): string | undefined {
  const days = call.option('days');
  if (days === undefined) return undefined;
  if (!/^\d{1,3}$/.test(days) || Number(days) < 1) throw new UsageError(`--days must be from 1 to 366, not "${days}"`);
  return new Date(Date.now() + Number(days) * DAY_MS).toISOString();
}
