import type { RequestFor, ResponseFrom } from '../../client/api-client.ts';
import { Page } from '../terminal/page.ts';
import { type Column, table } from '../terminal/table.ts';
import { printable } from '../terminal/terminal.ts';
import type { Call, Command } from './command.ts';
import { EXIT } from './failure.ts';
import { noteMore, pagingOptions, readPages } from './paging.ts';
import { readDefinition } from './read-file.ts';

type Schedule = ResponseFrom<'GET /api/v1/schedules/{name}'>;
type ScheduleFields = NonNullable<RequestFor<'PUT /api/v1/schedules/{name}'>['body']>;

const COLUMNS: readonly Column[] = [
  { title: 'SCHEDULE' },
  { title: 'TIMES', shrink: 'wrap' },
  { title: 'AUTOMATION', shrink: 'wrap' },
  { title: 'NEXT RUN' },
  { title: 'LAST', shrink: 'wrap' },
];

export const schedules: readonly Command[] = [
  {
    name: 'schedules list',
    args: [],
    description: 'list schedules with their next run',
    options: pagingOptions('schedules'),
    async run(call) {
      const api = call.api();
      const { items, nextCursor } = await readPages(call, async (query) => {
        const page = await api.call('GET /api/v1/schedules', { query });
        return { items: page.schedules, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ schedules: items, nextCursor });
      else printSchedules(call, printable(items), nextCursor);
      return EXIT.ok;
    },
  },
  {
    name: 'schedules show',
    args: ['NAME'],
    description: 'show a schedule: next runs, last run, last error',
    options: {},
    async run(call) {
      const schedule = await call.api().call('GET /api/v1/schedules/{name}', { params: { name: call.arg(0) } });
      if (call.json) call.printJson(schedule);
      else printSchedule(call, printable(schedule));
      return EXIT.ok;
    },
  },
  {
    name: 'schedules save',
    args: ['FILE'],
    description: 'create or change a schedule from a YAML or JSON file',
    details:
      'name: nightly-report\n' +
      'automation: report\n' +
      'cron: "0 9 * * 1-5"                   # or rate: 15 minutes\n' +
      'timeZone: Europe/Berlin               # optional, default UTC\n' +
      'inputs: { service: payments }         # optional\n' +
      'catchUp: one                          # optional: skip, one or all missed runs (catchUpMax: 10)',
    options: {},
    async run(call) {
      const { id: name, fields } = await readDefinition<ScheduleFields>(call.arg(0), 'name', 'a schedule');
      const saved = await call.api().call('PUT /api/v1/schedules/{name}', { params: { name }, body: fields });
      return printChanged(call, saved, 'saved');
    },
  },
  {
    name: 'schedules delete',
    args: ['NAME'],
    description: 'delete a schedule; its runs stay',
    options: {},
    async run(call) {
      const deleted = await call.api().call('DELETE /api/v1/schedules/{name}', { params: { name: call.arg(0) } });
      if (call.json) call.printJson(deleted);
      else call.terminal.print(printable(`deleted ${deleted.deleted}`));
      return EXIT.ok;
    },
  },
  {
    name: 'schedules enable',
    args: ['NAME'],
    description: 'enable a schedule from its next time on',
    options: {},
    async run(call) {
      const params = { name: call.arg(0) };
      return printChanged(call, await call.api().call('POST /api/v1/schedules/{name}/enable', { params }), 'enabled');
    },
  },
  {
    name: 'schedules disable',
    args: ['NAME'],
    description: 'disable a schedule; runs that it started continue',
    options: {},
    async run(call) {
      const params = { name: call.arg(0) };
      return printChanged(call, await call.api().call('POST /api/v1/schedules/{name}/disable', { params }), 'disabled');
    },
  },
];

function printChanged(call: Call, schedule: Schedule, change: string) {
  const { name, nextRuns } = printable(schedule);
  if (call.json) call.printJson(schedule);
  else call.terminal.print(`${change} ${name}; ${nextRuns[0] ? `next run ${nextRuns[0]}` : 'it starts no runs'}`);
  return EXIT.ok;
}

function printSchedules(call: Call, items: readonly Schedule[], nextCursor: string | null): void {
  const { terminal } = call;
  const rows = items.map((schedule) => [
    schedule.name,
    timesOf(schedule),
    schedule.automation,
    schedule.enabled ? (schedule.nextRuns[0] ?? '-') : 'disabled',
    lastOf(schedule),
  ]);
  if (items.length === 0) terminal.note('no schedules; create one with npx countersign schedules save FILE');
  else for (const line of table(COLUMNS, rows, terminal)) terminal.print(line);
  noteMore(call, nextCursor);
}

function printSchedule({ terminal }: Call, schedule: Schedule): void {
  const { name, enabled, description, automation, inputs, catchUp, catchUpMax, nextRuns, missed, makers } = schedule;
  const page = new Page(terminal);
  page.title(name, enabled ? { text: 'enabled', tone: 'good' } : { text: 'disabled' });
  if (description !== undefined) page.line(description);
  page.blank();
  page.field('times', timesOf(schedule));
  page.field('automation', automation);
  if (inputs) page.field('inputs', JSON.stringify(inputs));
  page.field('catch up', catchUp === 'all' ? `all, at most ${catchUpMax}` : catchUp);
  page.field('makers', makers.join(', '));
  page.field('next runs', nextRuns.join(', ') || '-');
  page.field('last', lastOf(schedule));
  if (missed) page.field('missed', `${missed.slots} slots, the last ${missed.lastSlot}`);
}

const timesOf = ({ cron, rate, timeZone }: Schedule) =>
  cron === undefined ? `every ${rate}` : `${cron} (${timeZone})`;

function lastOf({ lastRun, lastError }: Schedule): string {
  if (lastError) return `${lastError.slot} failed: ${lastError.code}: ${lastError.message}`;
  return lastRun ? `${lastRun.slot} started ${lastRun.runId}` : '-';
}
