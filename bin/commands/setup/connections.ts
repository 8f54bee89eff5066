import type { RequestFor, ResponseFrom } from '../../../client/api-client.ts';
import { Page } from '../../terminal/page.ts';
import { type Column, table } from '../../terminal/table.ts';
import { printable, type Tone } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, UsageError } from '../failure.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';
import { readDefinition } from '../read-file.ts';
import { withSecrets } from './secret-values.ts';

type Connection = ResponseFrom<'GET /api/v1/connections/{name}'>;
export type Tested = ResponseFrom<'POST /api/v1/connections/{name}/test'>;
type SavedConnection = RequestFor<'PUT /api/v1/connections/{name}'>['body'];

const COLUMNS: readonly Column[] = [
  { title: 'CONNECTION' },
  { title: 'ADDRESS', shrink: 'wrap' },
  { title: 'INSTANCE', shrink: 'wrap' },
  { title: 'CREDENTIAL' },
  { title: 'FOR PLANS' },
];

const FILE_FORMAT =
  'name: github                          # github, servicenow, slack, pagerduty, http; or a name for an agent of sessions\n' +
  'baseUrl: https://api.github.com\n' +
  'instance: github.com                  # Slack: the team id, ServiceNow: the instance name\n' +
  'credential: { token: { env: GITHUB_TOKEN } }          # from the environment; or { file: token.txt }\n' +
  'planCredential: { token: { env: GITHUB_READ_TOKEN } } # for plans; must not be able to write\n\n' +
  'Credentials that are not in the file stay as they are. docs/administration.md, "Credentials", lists their fields.';

export const connections: readonly Command[] = [
  {
    name: 'connections list',
    args: [],
    description: 'list connections and the state of their credentials',
    options: pagingOptions('connections'),
    async run(call) {
      const { items, nextCursor } = await readPages(call, async (query) => {
        const page = await call.api().call('GET /api/v1/connections', { query });
        return { items: page.connections, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ connections: items, nextCursor });
      else if (items.length === 0)
        call.terminal.note('no connections; add one with npx countersign connections add FILE');
      else {
        const rows = printable(items).map((each) => [
          each.name,
          each.baseUrl,
          each.instance,
          stateOf(each.credential.state),
          stateOf(each.planCredential.state),
        ]);
        for (const line of table(COLUMNS, rows, call.terminal)) call.terminal.print(line);
        noteMore(call, nextCursor);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'connections show',
    args: ['NAME'],
    description: 'show a connection, without its credentials',
    options: {},
    async run(call) {
      const connection = await call.api().call('GET /api/v1/connections/{name}', { params: { name: call.arg(0) } });
      if (call.json) call.printJson(connection);
      else show(call, printable(connection));
      return EXIT.ok;
    },
  },
  {
    name: 'connections add',
    args: ['FILE'],
    description: 'add or change a connection from a YAML or JSON file',
    details: FILE_FORMAT,
    options: { 'no-test': { description: 'do not test the connection afterwards' } },
    async run(call) {
      const { id: name, fields } = await readDefinition<SavedConnection>(call.arg(0), 'name', 'a connection');
      const body = withSecrets(fields, call.environment) as SavedConnection;
      const saved = await call.api().call('PUT /api/v1/connections/{name}', { params: { name }, body });
      const tested = call.isSet('no-test') ? undefined : await test(call, name);
      if (call.json) call.printJson({ ...saved, ...(tested && { test: tested }) });
      else {
        call.terminal.print(printable(`saved ${name}; it takes effect within ${saved.effectiveWithinSeconds} s`));
        if (tested) printTest(call, tested);
      }
      return tested?.ok === false ? EXIT.failed : EXIT.ok;
    },
  },
  {
    name: 'connections test',
    args: ['[NAME]…'],
    description: 'test the credentials of connections with a read',
    details: 'Without a name, all connections are tested. Exit code 1 if one does not work.',
    options: {},
    async run(call) {
      const names = call.args.length > 0 ? call.args : await connectionNames(call);
      const results: Tested[] = [];
      for (const name of names) {
        const tested = await test(call, name);
        results.push(tested);
        if (!call.json) printTest(call, tested);
      }
      if (call.json) call.printJson({ connections: results });
      else if (names.length === 0) call.terminal.note('there are no connections');
      return results.every(({ ok }) => ok) ? EXIT.ok : EXIT.failed;
    },
  },
  {
    name: 'connections delete',
    args: ['NAME'],
    description: 'delete a connection and its credentials',
    options: { yes: { description: 'do not ask' } },
    async run(call) {
      const name = call.arg(0);
      if (!call.isSet('yes') && (await call.terminal.ask(`delete ${name} and its credentials? [y/N] `)) !== 'y') {
        throw new UsageError('nothing was deleted; answer y, or add --yes');
      }
      const deleted = await call.api().call('DELETE /api/v1/connections/{name}', { params: { name } });
      if (call.json) call.printJson(deleted);
      else call.terminal.print(printable(`deleted ${deleted.deleted} and its credentials`));
      return EXIT.ok;
    },
  },
];

export const test = (call: Call, name: string): Promise<Tested> =>
  call.api().call('POST /api/v1/connections/{name}/test', { params: { name } });

export async function connectionNames(call: Call): Promise<string[]> {
  const { connections: found } = await call.api().call('GET /api/v1/connections', { query: { limit: '100' } });
  return found.map(({ name }) => name);
}

const MARKS: Record<Tested['findings'][number]['level'], { mark: string; tone: Tone }> = {
  ok: { mark: 'ok', tone: 'good' },
  warning: { mark: 'warning', tone: 'waiting' },
  error: { mark: 'ERROR', tone: 'bad' },
};

function printTest({ terminal }: Call, { name, findings }: Tested): void {
  for (const { level, credential, text } of findings) {
    const { mark, tone } = MARKS[level];
    const which = credential === 'planCredential' ? ' (plans)' : '';
    terminal.print(`${terminal.paint(tone, mark.padEnd(7))}  ${printable(`${name}${which}: ${text}`)}`);
  }
}

const TONES: Record<Connection['credential']['state'], Tone> = { set: 'good', missing: 'waiting', malformed: 'bad' };
const stateOf = (state: Connection['credential']['state']) => ({ text: state, tone: TONES[state] });

function show(
  { terminal }: Call,
  { name, baseUrl, instance, allowedHosts, credential, planCredential }: Connection,
): void {
  const page = new Page(terminal);
  page.title(name, stateOf(credential.state));
  page.blank();
  page.field('address', baseUrl);
  page.field('instance', instance);
  if (allowedHosts) page.field('hosts', allowedHosts.join(', ') || '-');
  page.field('credential', [credential.state, credential.problem].filter(Boolean).join(': '));
  page.field('for plans', [planCredential.state, planCredential.problem].filter(Boolean).join(': '));
}
