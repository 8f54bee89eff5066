import type { ResponseFrom } from '../../../client/api-client.ts';
import { Page } from '../../terminal/page.ts';
import type { Tone } from '../../terminal/terminal.ts';
import { dateAndTime } from '../../terminal/times.ts';
import type { Call } from '../command.ts';

export type Execution = ResponseFrom<'GET /api/v1/executions/{id}'>;

const TONES: Partial<Record<Execution['state'], Tone>> = {
  completed: 'good',
  failed: 'bad',
  waiting_for_approval: 'waiting',
  paused: 'waiting',
};

const COLUMNS = [
  { title: 'STEP' },
  { title: 'ID', shrink: 'cut-end' as const },
  { title: 'TOOL' },
  { title: 'STATE' },
  { title: 'AGENT', shrink: 'cut-end' as const },
  { title: 'EXIT' },
];

export function printExecution({ terminal }: Call, execution: Execution): void {
  const { session_id, state, ticket_id, runbook_id, validation_mode, environment_profile, error } = execution;
  const page = new Page(terminal);
  page.title(session_id, { text: state, tone: TONES[state] });
  if (error) page.line(`${error.code}: ${error.message}`, 'bad');
  page.blank();
  page.field('ticket', ticket_id ?? '-');
  page.field('runbook', runbook_id);
  if (validation_mode !== null) page.field('mode', validation_mode);
  if (environment_profile !== null) page.field('profile', environment_profile);
  page.field('created', dateAndTime(execution.created_at));
  if (execution.rollback_session_id !== null) page.exactField('undone by', execution.rollback_session_id);
  page.heading('Steps');
  page.table(
    COLUMNS,
    execution.steps.map((step) => [
      ...[String(step.step_number), step.step_id, step.tool, step.state],
      ...[step.worker_id ?? '-', step.exit_code === null ? '-' : String(step.exit_code)],
    ]),
  );
  const pending = execution.approvals.filter((each) => each.state === 'pending' || each.state === 'notified');
  for (const { step_number } of pending) {
    terminal.note(`\nstep ${step_number} waits: npx countersign executions approve|reject ${session_id.slice(0, 12)}`);
  }
  const { output } = execution;
  if (output === null || output.chunks.length === 0) return;
  page.heading(`Last output of step ${output.step_number}`);
  for (const line of output.chunks
    .map(({ data }) => data)
    .join('')
    .trimEnd()
    .split('\n'))
    page.exactLine(line);
}
