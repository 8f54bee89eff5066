import type { ResponseFrom } from '../../../client/api-client.ts';
import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import { counted } from '../../terminal/counted.ts';
import { type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import { ago, dateAndTime } from '../../terminal/times.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, UsageError } from '../failure.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';

type Token = ResponseFrom<'GET /api/v1/enrolment-tokens'>['enrolmentTokens'][number];
type Environment = Token['environments'][number];

const ENVIRONMENTS: readonly Environment[] = ['prod', 'staging', 'dev'];

const COLUMNS: readonly Column[] = [
  { title: 'FOR' },
  { title: 'STATE', shrink: 'wrap' },
  { title: 'ENVIRONMENTS', shrink: 'wrap' },
  { title: 'CREATED', shrink: 'wrap' },
  { title: 'ID', shrink: 'wrap' },
];

export const agentTokens: readonly Command[] = [
  {
    name: 'agents token',
    args: ['NAME'],
    description: 'create a token with which one agent enrols, once',
    details:
      'Give it to the machine of the agent, which runs: countersign agent enrol.\n' +
      'The token decides the name, the environments and the network segment of the agent.',
    options: {
      environment: { value: 'ENV', repeatable: true, required: true, description: ENVIRONMENTS.join(', ') },
      segment: { value: 'NAME', description: 'network segment that the agent reaches' },
      minutes: { value: 'N', description: 'minutes until it expires, 1 to 1440 (default 15)' },
    },
    async run(call) {
      const body = {
        name: call.arg(0),
        environments: environmentsOf(call),
        networkSegment: call.option('segment') ?? null,
        minutes: minutesOf(call),
      };
      const created = await call
        .api()
        .call('POST /api/v1/enrolment-tokens', { body })
        .catch((error: unknown) => {
          throw error instanceof UsageError ? new UsageError(withOptionNames(error.message)) : error;
        });
      if (call.json) call.printJson(created);
      else {
        // Alone on stdout, so that a script can pass it on.
        call.terminal.print(created.token);
        const use = `npx countersign agent enrol ${call.url} --token TOKEN`;
        call.terminal.note(printable(`valid once, until ${dateAndTime(created.expiresAt)}; on the agent: ${use}`));
      }
      return EXIT.ok;
    },
  },
  {
    name: 'agents tokens',
    args: [],
    description: 'list enrolment tokens: open, used, revoked or expired',
    options: pagingOptions('tokens'),
    async run(call) {
      const { items, nextCursor } = await readPages(call, async (query) => {
        const page = await call.api().call('GET /api/v1/enrolment-tokens', { query });
        return { items: page.enrolmentTokens, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ enrolmentTokens: items, nextCursor });
      else if (items.length === 0) call.terminal.note('no enrolment tokens');
      else {
        const rows = printable(items).map((token) => rowOf(token, Date.now()));
        for (const line of table(COLUMNS, rows, call.terminal)) call.terminal.print(line);
        noteMore(call, nextCursor);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'agents revoke-token',
    args: ['ID'],
    description: 'revoke an enrolment token that was not used',
    options: {},
    async run(call) {
      const revoked = await call.api().call('DELETE /api/v1/enrolment-tokens/{id}', { params: { id: call.arg(0) } });
      if (call.json) call.printJson(revoked);
      else call.terminal.print(printable(`revoked the token of ${revoked.name}`));
      return EXIT.ok;
    },
  },
];

function rowOf({ name, state, environments, createdAt, createdBy, tokenId, reused }: Token, nowMs: number): string[] {
  const again = reused ? `; tried again ${counted(reused.count, 'time')}, the last ${ago(reused.at, nowMs)}` : '';
  return [name, `${state}${again}`, environments.join(', '), `${ago(createdAt, nowMs)} by ${createdBy}`, tokenId];
}

function environmentsOf(call: Call): Environment[] {
  const given = call.options('environment');
  if (given.length === 0) throw new UsageError(`--environment is required: ${ENVIRONMENTS.join(', ')}`);
  return given.map(environmentOf);
}

/** The API names the fields of the request; the person gave an option and an argument. */
const withOptionNames = (message: string): string =>
  message.replace(/^networkSegment:/gm, '--segment:').replace(/^name:/gm, 'NAME:');

function environmentOf(given: string): Environment {
  const found = ENVIRONMENTS.find((each) => each === given);
  if (found) return found;
  const known = didYouMean(given, ENVIRONMENTS) || `; there are: ${ENVIRONMENTS.join(', ')}`;
  throw new UsageError(`--environment "${given}" is not an environment${known}`);
}

function minutesOf(call: Call): number | undefined {
  const given = call.option('minutes');
  if (given === undefined) return undefined;
  if (/^\d{1,4}$/.test(given) && Number(given) > 0) return Number(given);
  throw new UsageError(`--minutes must be from 1 to 1440, not "${given}"`);
}
