import type { ResponseFrom } from '../../../client/api-client.ts';
import { EXECUTION_STATE } from '../../../lambdas/run/statuses/execution-state.ts';
import { VALIDATION_MODES } from '../../../lambdas/run/validation-mode.ts';
import { table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import { PROFILE_NAMES } from '../agents/profiles.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../failure.ts';
import { limitOf, noteMore, pagingOptions, readPages } from '../paging.ts';
import { findRunId } from '../runs/find-run.ts';
import { INPUTS, inputsOf } from '../runs/start.ts';
import { printExecution } from './execution-page.ts';

/** The words of source 001 for runs. An execution is a run: `runs` knows the same ids, and more about them. */
const SAME_AS_RUNS = 'An execution is a run: ID is that of the run, or its first characters.';

export const executions: readonly Command[] = [
  {
    name: 'executions start',
    args: ['TICKET'],
    description: 'start the runbook of a ticket',
    options: {
      runbook: { value: 'WORKFLOW', description: 'name, or name@version; default: that of the last run of the ticket' },
      mode: {
        value: 'MODE',
        description: `at least as strict as that of the workflow: ${VALIDATION_MODES.join(', ')}`,
      },
      'environment-profile': {
        value: 'PROFILE',
        description: `refuse commands with another profile: ${PROFILE_NAMES.join(', ')}`,
      },
      ...INPUTS,
      'idempotency-key': { value: 'KEY', description: 'the same request with the same key starts nothing again' },
    },
    run: start,
  },
  {
    name: 'executions list',
    args: [],
    description: 'list executions, newest first',
    options: pagingOptions('executions'),
    run: list,
  },
  {
    name: 'executions show',
    args: ['ID'],
    description: 'show an execution: steps, approvals, and the last output',
    details: SAME_AS_RUNS,
    options: {},
    run: show,
  },
  {
    name: 'executions events',
    args: ['ID'],
    description: 'list the events of an execution, oldest first',
    details: SAME_AS_RUNS,
    options: {
      since: { value: 'NUMBER', description: 'only those after this commit: `next` of an earlier list' },
      limit: { value: 'N', description: 'commits per page, 1 to 100' },
      all: { description: 'all pages' },
    },
    run: events,
  },
  {
    name: 'executions rollback',
    args: ['ID'],
    description: 'undo the writes of an execution, newest first',
    details: SAME_AS_RUNS,
    options: {
      step: { value: 'NUMBER', description: 'undo this write and all later ones, of an execution that has ended' },
      reason: { value: 'TEXT', description: 'reason, stored in the history' },
    },
    run: rollBack,
  },
];

async function start(call: Call): Promise<ExitCode> {
  const inputs = inputsOf(call);
  const runbook = call.option('runbook');
  const mode = oneOf(call, 'mode', VALIDATION_MODES);
  const profile = oneOf(call, 'environment-profile', PROFILE_NAMES);
  const body = {
    ticket_id: call.arg(0),
    ...(runbook !== undefined && { runbook_id: runbook }),
    ...(mode !== undefined && { validation_mode: mode }),
    ...(profile !== undefined && { environment_profile: profile }),
    ...(inputs && { inputs }),
  };
  const key = call.option('idempotency-key');
  const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
  const { isNew, body: started } = await call.api().create('POST /api/v1/executions', { body, headers });
  if (call.json) call.printJson({ ...started, isNew });
  else {
    const what = isNew ? 'started' : 'not started again, an earlier request with this key started it';
    call.terminal.print(printable(`${started.session_id} ${what}: ${started.runbook_id} for ${started.ticket_id}`));
    call.terminal.note(`follow it with npx countersign runs watch ${started.session_id.slice(0, 12)}`);
  }
  return EXIT.ok;
}

function oneOf<Name extends string>(call: Call, option: string, names: readonly Name[]): Name | undefined {
  const given = call.option(option);
  const known = names.find((name) => name === given);
  if (given === undefined || known !== undefined) return known;
  throw new UsageError(`--${option} must be one of ${names.join(', ')}, not "${given}"`);
}

type Run = ResponseFrom<'GET /api/v1/runs'>['runs'][number];

const asExecution = ({ runId, status, subject, workflow, createdAt, completedAt, error }: Run) => ({
  ...{ session_id: runId, state: EXECUTION_STATE[status], ticket_id: subject },
  runbook_id: `${workflow.name}@${workflow.version}`,
  ...{ created_at: createdAt, completed_at: completedAt, error },
});

async function list(call: Call): Promise<ExitCode> {
  const { items, nextCursor } = await readPages(call, async (query) => {
    const page = await call.api().call('GET /api/v1/runs', { query });
    return { items: page.runs.map(asExecution), nextCursor: page.nextCursor };
  });
  if (call.json) call.printJson({ executions: items, nextCursor });
  else if (items.length === 0) call.terminal.note('no executions; start one: npx countersign executions start TICKET');
  else {
    const rows = printable(items).map(({ session_id, state, ticket_id, runbook_id, created_at }) => [
      ...[session_id, state, ticket_id ?? '-', runbook_id, created_at],
    ]);
    const columns = ['EXECUTION', 'STATE', 'TICKET', 'RUNBOOK', 'CREATED'].map((title) => ({ title }));
    for (const line of table(columns, rows, call.terminal)) call.terminal.print(line);
    noteMore(call, nextCursor);
  }
  return EXIT.ok;
}

async function show(call: Call): Promise<ExitCode> {
  const api = call.api();
  const params = { id: await findRunId(api, call.arg(0)) };
  const first = await api.call('GET /api/v1/executions/{id}', { params });
  let { next_steps_cursor: cursor } = first;
  const steps = [...first.steps];
  while (cursor !== null) {
    const page: typeof first = await api.call('GET /api/v1/executions/{id}', { params, query: { cursor } });
    steps.push(...page.steps);
    cursor = page.next_steps_cursor;
  }
  const execution = { ...first, steps, next_steps_cursor: null };
  if (call.json) call.printJson(execution);
  else printExecution(call, printable(execution));
  return EXIT.ok;
}

async function events(call: Call): Promise<ExitCode> {
  const api = call.api();
  const params = { id: await findRunId(api, call.arg(0)) };
  const read = (since: number) => {
    const limit = limitOf(call);
    const query = { since, ...(limit !== undefined && { limit: Number(limit) }) };
    return api.call('GET /api/v1/executions/{id}/events', { params, query });
  };
  let page = await read(call.numberOption('since') ?? 0);
  const found = [...page.events];
  while (call.isSet('all') && page.more) {
    page = await read(page.next);
    found.push(...page.events);
  }
  if (call.json) call.printJson({ ...page, events: found });
  else {
    for (const { timestamp, event, step_number } of printable(found)) {
      call.terminal.print(`${timestamp}  ${event}${step_number === null ? '' : `  step ${step_number}`}`);
    }
    if (page.more) call.terminal.note(`\nthere are more: use --all, or --since ${page.next}`);
  }
  return EXIT.ok;
}

async function rollBack(call: Call): Promise<ExitCode> {
  const api = call.api();
  const [step, reason] = [call.numberOption('step'), call.option('reason')];
  const body = { ...(step !== undefined && { step_number: step }), ...(reason !== undefined && { reason }) };
  const id = await findRunId(api, call.arg(0));
  const rolledBack = await api.call('POST /api/v1/executions/{id}/rollback', { params: { id }, body });
  if (call.json) call.printJson(rolledBack);
  else {
    const { rollback_session_id: by, state } = rolledBack;
    call.terminal.print(by === null ? `${id} is in ${state}` : `${by} undoes the writes of ${id}`);
    call.terminal.note(`follow it with npx countersign runs watch ${(by ?? id).slice(0, 12)}`);
  }
  return EXIT.ok;
}
