import type { ResponseFrom } from '../../../client/api-client.ts';
import { Page } from '../../terminal/page.ts';
import { type Column, table } from '../../terminal/table.ts';
import { printable, type Tone } from '../../terminal/terminal.ts';
import { ago, dateAndTime } from '../../terminal/times.ts';
import type { Call, Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';

type Agent = ResponseFrom<'GET /api/v1/agents/{id}'>;

const COLUMNS: readonly Column[] = [
  { title: 'AGENT' },
  { title: 'STATE' },
  { title: 'ENVIRONMENTS', shrink: 'wrap' },
  { title: 'SEGMENT', shrink: 'wrap' },
  { title: 'COMMANDS' },
  { title: 'LAST SYNC' },
  { title: 'VERSION' },
];

const TONES: Partial<Record<Agent['state'], Tone>> = {
  idle: 'good',
  executing: 'good',
  errored: 'bad',
  offline: 'bad',
};

export const agents: readonly Command[] = [
  {
    name: 'agents list',
    args: [],
    description: 'list agents: state, environments, commands, last sync',
    options: pagingOptions('agents'),
    async run(call) {
      const { items, nextCursor } = await readPages(call, async (query) => {
        const page = await call.api().call('GET /api/v1/agents', { query });
        return { items: page.agents, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ agents: items, nextCursor });
      else if (items.length === 0) {
        call.terminal.note('no agents; enrol one: npx countersign agents token NAME --environment ENV');
      } else {
        const rows = printable(items).map((agent) => rowOf(agent, Date.now()));
        for (const line of table(COLUMNS, rows, call.terminal)) call.terminal.print(line);
        noteMore(call, nextCursor);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'agents show',
    args: ['NAME'],
    description: 'show an agent: capabilities, profiles, commands',
    options: {},
    async run(call) {
      const agent = await call.api().call('GET /api/v1/agents/{id}', { params: { id: call.arg(0) } });
      if (call.json) call.printJson(agent);
      else printAgent(call, printable(agent));
      return EXIT.ok;
    },
  },
  {
    name: 'agents drain',
    args: ['NAME'],
    description: 'let an agent finish its commands, and assign it no new ones',
    options: { reason: { value: 'TEXT', description: 'reason, stored in the history' } },
    async run(call) {
      const body = { reason: call.option('reason') };
      const agent = await call.api().call('POST /api/v1/agents/{id}/drain', { params: { id: call.arg(0) }, body });
      const { length } = agent.commands;
      return printChanged(
        call,
        agent,
        length > 0 ? `${agent.name} drains; it still runs ${length}` : `${agent.name} drains`,
      );
    },
  },
  {
    name: 'agents resume',
    args: ['NAME'],
    description: 'let a drained agent get assignments again',
    options: {},
    async run(call) {
      const params = { id: call.arg(0) };
      const agent = await call.api().call('POST /api/v1/agents/{id}/resume', { params, body: {} });
      return printChanged(call, agent, `${agent.name} is ${agent.state}`);
    },
  },
  {
    name: 'agents remove',
    args: ['NAME'],
    description: 'remove an agent at once: its key is refused from now on',
    details: 'Its commands end as lost within 30 seconds. To let them finish first: agents drain.',
    options: {},
    async run(call) {
      const removed = await call.api().call('DELETE /api/v1/agents/{id}', { params: { id: call.arg(0) } });
      if (call.json) call.printJson(removed);
      else {
        const lost = removed.running > 0 ? `; it ran ${removed.running}, see runs list --status needs_human` : '';
        call.terminal.print(printable(`removed ${removed.removed}${lost}`));
      }
      return EXIT.ok;
    },
  },
];

function printChanged(call: Call, agent: Agent, text: string) {
  if (call.json) call.printJson(agent);
  else call.terminal.print(printable(text));
  return EXIT.ok;
}

function rowOf(agent: Agent, nowMs: number): string[] {
  const { name, state, environments, networkSegment, commands, process } = agent;
  return [
    name,
    state,
    environments.join(', '),
    networkSegment ?? '-',
    process ? `${commands.length} of ${process.slots}` : '-',
    lastSyncOf(agent, (at) => ago(at, nowMs)),
    process?.version ?? '-',
  ];
}

/** An agent that has stopped does not sync until it starts again. */
function lastSyncOf({ lastSyncAt, stoppedAt }: Agent, timeText: (at: string) => string): string {
  if (lastSyncAt !== null) return timeText(lastSyncAt);
  // Stages of earlier releases do not send it.
  return stoppedAt ? `stopped ${timeText(stoppedAt)}` : 'never';
}

function printAgent({ terminal }: Call, agent: Agent): void {
  const { process, draining, errored } = agent;
  const page = new Page(terminal);
  page.title(agent.name, { text: agent.state, tone: TONES[agent.state] });
  if (errored) page.line(`${dateAndTime(errored.at)}: ${errored.reason}`, 'bad');
  if (draining) page.line(`drains since ${dateAndTime(draining.at)}, by ${draining.by}${reasonOf(draining)}`);
  page.blank();
  page.field('for', `${agent.environments.join(', ')}${agent.networkSegment ? ` in ${agent.networkSegment}` : ''}`);
  page.field('last sync', lastSyncOf(agent, dateAndTime));
  if (process) {
    page.field(
      'registered',
      `${dateAndTime(process.registeredAt)}, version ${process.version}, for ${process.environments.join(', ')}`,
    );
    page.field('host', `${process.host.platform} ${process.host.arch}, Node.js ${process.host.node}`);
    page.field('profiles', process.profiles.join(', ') || 'none: its host cannot isolate commands');
    page.field('can', process.capabilities.join(', ') || '-');
    page.field('slots', `${process.freeSlots} of ${process.slots} free`);
  }
  page.field('enrolled', `${dateAndTime(agent.enrolledAt)} by ${agent.enrolledBy}`);
  page.exactField('id', agent.agentId);
  page.exactField('key', agent.keyThumbprint);
  if (agent.commands.length === 0) return;
  page.heading('Commands');
  for (const { runId, stepIndex, state, until } of agent.commands) {
    page.line(`${runId} step ${stepIndex}: ${state}, lease until ${dateAndTime(until)}`);
  }
}

const reasonOf = ({ reason }: { reason?: string }): string => (reason === undefined ? '' : `: ${reason}`);
