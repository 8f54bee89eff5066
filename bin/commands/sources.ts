import type { RequestFor, ResponseFrom } from '../../client/api-client.ts';
import { Page } from '../terminal/page.ts';
import { type Column, table } from '../terminal/table.ts';
import { printable } from '../terminal/terminal.ts';
import type { Call, Command } from './command.ts';
import { EXIT } from './failure.ts';
import { noteMore, pagingOptions, readPages } from './paging.ts';
import { readDefinition } from './read-file.ts';

type Source = ResponseFrom<'GET /api/v1/sources/{name}'>;
type SourceFields = NonNullable<RequestFor<'PUT /api/v1/sources/{name}'>['body']>;

const COLUMNS: readonly Column[] = [
  { title: 'SOURCE' },
  { title: 'PATH', shrink: 'wrap' },
  { title: 'TITLE', shrink: 'wrap' },
];

export const sources: readonly Command[] = [
  {
    name: 'sources list',
    args: [],
    description: 'list webhook sources of your own',
    options: pagingOptions('sources'),
    async run(call) {
      const api = call.api();
      const { items, nextCursor } = await readPages(call, async (query) => {
        const page = await api.call('GET /api/v1/sources', { query });
        return { items: page.sources, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ sources: items, nextCursor });
      else {
        const rows = printable(items).map(({ name, path, title, enabled }) => [
          name,
          path,
          enabled ? title : 'disabled',
        ]);
        if (items.length === 0) call.terminal.note('no sources; create one with npx countersign sources save FILE');
        else for (const line of table(COLUMNS, rows, call.terminal)) call.terminal.print(line);
        noteMore(call, nextCursor);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'sources show',
    args: ['NAME'],
    description: 'show a webhook source, with its path and secret name',
    options: {},
    async run(call) {
      const source = await call.api().call('GET /api/v1/sources/{name}', { params: { name: call.arg(0) } });
      if (call.json) call.printJson(source);
      else printSource(call, printable(source));
      return EXIT.ok;
    },
  },
  {
    name: 'sources save',
    args: ['FILE'],
    description: 'create or change a webhook source from a file',
    details:
      'name: alerts\n' +
      'title: "{% trigger.payload.alert.name %} on {% trigger.payload.host %}"\n' +
      'subject: "{% trigger.payload.host %}"           # optional, like actor, event and id\n' +
      'actor: "{% trigger.payload.user %}"\n' +
      'event: "{% trigger.payload.status %}"           # automations wait for alerts.firing, or alerts for any\n' +
      'id: "{% trigger.payload.alert.id %}"            # default: the header webhook-id',
    options: {},
    async run(call) {
      const { id: name, fields } = await readDefinition<SourceFields>(call.arg(0), 'name', 'a webhook source');
      const saved = await call.api().call('PUT /api/v1/sources/{name}', { params: { name }, body: fields });
      if (call.json) call.printJson(saved);
      else {
        const { path, secretEntry, effectiveWithinSeconds } = printable(saved);
        call.terminal.print(`saved ${name}; within ${effectiveWithinSeconds} s it can send to ${path}`);
        call.terminal.note(`its secret is the entry ${secretEntry} of the tenant's webhook-signing secret`);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'sources delete',
    args: ['NAME'],
    description: 'delete a webhook source that no automation uses',
    options: {},
    async run(call) {
      const deleted = await call.api().call('DELETE /api/v1/sources/{name}', { params: { name: call.arg(0) } });
      if (call.json) call.printJson(deleted);
      else call.terminal.print(printable(`deleted ${deleted.deleted}`));
      return EXIT.ok;
    },
  },
];

function printSource({ terminal }: Call, source: Source): void {
  const { name, enabled, description, title, subject, actor, event, id, path, secretEntry } = source;
  const page = new Page(terminal);
  page.title(name, enabled ? { text: 'enabled', tone: 'good' } : { text: 'disabled' });
  if (description !== undefined) page.line(description);
  page.blank();
  page.field('path', path);
  page.field('secret', secretEntry);
  for (const [label, value] of Object.entries({ title, subject, actor, event, id })) page.field(label, value ?? '-');
}
