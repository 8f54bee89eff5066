import type { Change } from '../../../lambdas/pipeline/definition-changes.ts';
import { type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';

const COLUMNS: readonly Column[] = [
  { title: 'AT' },
  { title: 'WHO' },
  { title: 'WHAT', keeps: 'all' },
  { title: 'CHANGED', keeps: 'all' },
];
const PENDING_COLUMNS: readonly Column[] = [
  { title: 'CHANGE' },
  { title: 'ASKED BY' },
  { title: 'EXPIRES' },
  { title: 'WIDENS', keeps: 'all' },
];

/** What people changed, and what waits for a second owner. */
export const changes: readonly Command[] = [
  {
    name: 'changes list',
    takes: [],
    says: 'who changed people, policies, automations and the like',
    details:
      'Changes of people, policies, connections, automations, workflows, settings and API keys, newest first.\n' +
      '--json has each one before and after.',
    options: pagingOptions('changes'),
    async run(call) {
      const { items, nextCursor } = await readPages(call, async (asked) => {
        const page = await call.api().changes(asked);
        return { items: page.changes, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ changes: items, nextCursor });
      else {
        const rows = items.map((change) => [
          change.at,
          printable(change.actor),
          printable(`${change.kind} ${change.name} ${change.action}`),
          printable(changedFields(change)),
        ]);
        for (const line of table(COLUMNS, rows, call.terminal)) call.terminal.print(line);
        noteMore(call, nextCursor);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'changes pending',
    takes: [],
    says: 'changes that wait until a second owner confirms them',
    options: pagingOptions('changes'),
    async run(call) {
      const { items, nextCursor } = await readPages(call, async (asked) => {
        const page = await call.api().pendingChanges(asked);
        return { items: page.pending, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ pending: items, nextCursor });
      else {
        const rows = items.map(({ changeId, requestedBy, expiresAt, expired, widens }) => [
          changeId,
          printable(requestedBy),
          expired ? 'expired' : expiresAt,
          printable(widens.join('; ')),
        ]);
        if (items.length === 0) call.terminal.note('no change waits for a second owner');
        else for (const line of table(PENDING_COLUMNS, rows, call.terminal)) call.terminal.print(line);
        noteMore(call, nextCursor);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'changes confirm',
    takes: ['ID'],
    says: 'make a change that another owner or an admin asked for',
    options: {},
    async run(call) {
      const person = await call.api().confirmChange(call.positional(0));
      if (call.json) call.printJson(person);
      else call.terminal.print(printable(`${person.id} is changed`));
      return EXIT.ok;
    },
  },
  {
    name: 'changes reject',
    takes: ['ID'],
    says: 'dismiss a change that waits for a second owner',
    options: { reason: { value: 'TEXT', required: true, says: 'why' } },
    async run(call) {
      const rejected = await call.api().rejectChange(call.positional(0), call.text('reason') ?? '');
      if (call.json) call.printJson(rejected);
      else call.terminal.print(printable(`${rejected.rejected} is rejected; nothing is changed`));
      return EXIT.ok;
    },
  },
];

/** The names of the fields that differ; all of them stand in `--json`. */
function changedFields({ before, after, reason }: Change): string {
  if (reason !== undefined) return reason;
  const fields = (value: unknown) => new Map(Object.entries(value !== null && typeof value === 'object' ? value : {}));
  const [old, now] = [fields(before), fields(after)];
  const names = [...new Set([...old.keys(), ...now.keys()])];
  const differing = names.filter((name) => JSON.stringify(old.get(name)) !== JSON.stringify(now.get(name)));
  return before === null || after === null ? '-' : differing.join(', ') || '-';
}
