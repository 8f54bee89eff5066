import type { Change } from '../../../lambdas/pipeline/definition-changes.ts';
import { type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';

const COLUMNS: readonly Column[] = [
  { title: 'AT' },
  { title: 'BY' },
  { title: 'CHANGE', shrink: 'wrap' },
  { title: 'FIELDS', shrink: 'wrap' },
];
const PENDING_COLUMNS: readonly Column[] = [
  { title: 'CHANGE' },
  { title: 'REQUESTED BY' },
  { title: 'EXPIRES' },
  { title: 'EXTENDS', shrink: 'wrap' },
];

export const changes: readonly Command[] = [
  {
    name: 'changes list',
    args: [],
    description: 'list changes of people, policies, automations and more',
    details: 'Newest first. Includes connections, workflows and API keys.\n--json shows each value before and after.',
    options: pagingOptions('changes'),
    async run(call) {
      const { items, nextCursor } = await readPages(call, async (query) => {
        const page = await call.api().call('GET /api/v1/changes', { query });
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
    args: [],
    description: 'list changes that a second owner must confirm',
    options: pagingOptions('changes'),
    async run(call) {
      const { items, nextCursor } = await readPages(call, async (query) => {
        const page = await call.api().call('GET /api/v1/changes/pending', { query });
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
        if (items.length === 0) call.terminal.note('no pending changes');
        else for (const line of table(PENDING_COLUMNS, rows, call.terminal)) call.terminal.print(line);
        noteMore(call, nextCursor);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'changes confirm',
    args: ['ID'],
    description: 'confirm a change that another owner or an admin requested',
    options: {},
    async run(call) {
      const person = await call
        .api()
        .call('POST /api/v1/changes/pending/{id}/confirm', { params: { id: call.arg(0) } });
      if (call.json) call.printJson(person);
      else call.terminal.print(printable(`confirmed; ${person.id} is changed`));
      return EXIT.ok;
    },
  },
  {
    name: 'changes reject',
    args: ['ID'],
    description: 'reject a pending change',
    options: { reason: { value: 'TEXT', required: true, description: 'why you reject it' } },
    async run(call) {
      const rejected = await call.api().call('POST /api/v1/changes/pending/{id}/reject', {
        params: { id: call.arg(0) },
        body: { reason: call.option('reason') ?? '' },
      });
      if (call.json) call.printJson(rejected);
      else call.terminal.print(printable(`rejected ${rejected.rejected}; nothing is changed`));
      return EXIT.ok;
    },
  },
];

/** The names of the changed fields. */
function changedFields({ before, after, reason }: Change): string {
  if (reason !== undefined) return reason;
  const fields = (value: unknown) => new Map(Object.entries(value !== null && typeof value === 'object' ? value : {}));
  const [old, now] = [fields(before), fields(after)];
  const names = [...new Set([...old.keys(), ...now.keys()])];
  const differing = names.filter((name) => JSON.stringify(old.get(name)) !== JSON.stringify(now.get(name)));
  return before === null || after === null ? '-' : differing.join(', ') || '-';
}
