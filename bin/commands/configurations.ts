import type { RequestFor, ResponseFrom } from '../../client/api-client.ts';
import { Page } from '../terminal/page.ts';
import { type Column, table } from '../terminal/table.ts';
import { printable } from '../terminal/terminal.ts';
import type { Call, Command } from './command.ts';
import { EXIT } from './failure.ts';
import { noteMore, pagingOptions, readPages } from './paging.ts';
import { readDefinition } from './read-file.ts';

type Configuration = ResponseFrom<'GET /api/v1/configurations/{name}'>;
type ConfigurationFields = NonNullable<RequestFor<'PUT /api/v1/configurations/{name}'>['body']>;

const COLUMNS: readonly Column[] = [
  { title: 'CONFIGURATION' },
  { title: 'SESSIONS RUN ON', shrink: 'wrap' },
  { title: 'ROUTING', shrink: 'wrap' },
];

export const configurations: readonly Command[] = [
  {
    name: 'configurations list',
    args: [],
    description: 'list configurations: where sessions run',
    options: pagingOptions('configurations'),
    async run(call) {
      const api = call.api();
      const { items, nextCursor } = await readPages(call, async (query) => {
        const page = await api.call('GET /api/v1/configurations', { query });
        return { items: page.configurations, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ configurations: items, nextCursor });
      else {
        const rows = printable(items).map((each) => [each.name, sessionOf(each), each.routing ?? '-']);
        if (items.length === 0) {
          call.terminal.note('no configurations; create one with npx countersign configurations save FILE');
        } else for (const line of table(COLUMNS, rows, call.terminal)) call.terminal.print(line);
        noteMore(call, nextCursor);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'configurations show',
    args: ['NAME'],
    description: 'show a configuration',
    options: {},
    async run(call) {
      const params = { name: call.arg(0) };
      const configuration = await call.api().call('GET /api/v1/configurations/{name}', { params });
      if (call.json) call.printJson(configuration);
      else printConfiguration(call, printable(configuration));
      return EXIT.ok;
    },
  },
  {
    name: 'configurations save',
    args: ['FILE'],
    description: 'create or change a configuration from a file',
    details:
      'name: triage-agent\n' +
      'routing: triages GitHub issues        # optional; a model picks only configurations that have it\n' +
      'session:\n' +
      '  provider: a2a                       # or agent, with command, environment and capabilities: docs/workflows.md\n' +
      '  url: https://triage.example.com     # its agent card is at /.well-known/agent-card.json\n' +
      '  connection: triage-agent            # the connection with its credential\n' +
      'instructions: Answer in English.      # optional, like description and model\n' +
      'revision: 3                           # optional: refuse if it was changed since revision 3',
    options: {},
    async run(call) {
      const { id: name, fields } = await readDefinition<ConfigurationFields>(call.arg(0), 'name', 'a configuration');
      const saved = await call.api().call('PUT /api/v1/configurations/{name}', { params: { name }, body: fields });
      if (call.json) call.printJson(saved);
      else call.terminal.print(printable(`saved ${saved.name}, revision ${saved.revision}`));
      return EXIT.ok;
    },
  },
  {
    name: 'configurations delete',
    args: ['NAME'],
    description: 'delete a configuration that no automation names',
    options: {},
    async run(call) {
      const params = { name: call.arg(0) };
      const deleted = await call.api().call('DELETE /api/v1/configurations/{name}', { params });
      if (call.json) call.printJson(deleted);
      else call.terminal.print(printable(`deleted ${deleted.deleted}`));
      return EXIT.ok;
    },
  },
];

function printConfiguration({ terminal }: Call, configuration: Configuration): void {
  const { name, description, routing, model, instructions, author, revision } = configuration;
  const page = new Page(terminal);
  page.title(name, { text: `revision ${revision}` });
  if (description !== undefined) page.line(description);
  page.blank();
  page.field('sessions', sessionOf(configuration));
  for (const [label, value] of Object.entries({ routing, model, author })) page.field(label, value ?? '-');
  if (instructions === undefined) return;
  page.heading('Instructions');
  for (const line of instructions.trimEnd().split('\n')) page.line(line);
}

const sessionOf = ({ session }: Configuration): string =>
  session.provider === 'a2a'
    ? `${session.url} (connection ${session.connection})`
    : `${[session.command ?? 'no command', ...(session.args ?? [])].join(' ')} on an agent in ${session.environment}${session.capabilities.length > 0 ? ` with ${session.capabilities.join(', ')}` : ''}`;
