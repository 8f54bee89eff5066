import type { PlanOutcome } from '../../../lambdas/plan/plan.ts';
import { parse } from '../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../failure.ts';
import { read, sourceOf } from '../webhook/send.ts';
import { planInWords } from './plan-text.ts';
import { printChecked } from './validate.ts';
import { checkWorkflowFile } from './workflow-file.ts';

const EXIT_OF: Record<PlanOutcome, ExitCode> = {
  runs: EXIT.ok,
  needs_approval: EXIT.ok,
  fails: EXIT.failed,
  denied: EXIT.refused,
};

export const workflowSimulate: Command = {
  name: 'workflow simulate',
  takes: ['FILE'],
  says: 'show what a run would write, without writing it',
  details: [
    "The plan is made where Countersign runs, with the tenant's policies, looking at its targets with",
    'credentials that cannot write. Exit code 1 if the run would fail, 3 if something is denied.',
  ].join('\n'),
  options: {
    event: {
      value: 'FILE',
      required: true,
      says: 'the event that starts the run, e.g. events/github-issue-opened.json',
    },
    source: { value: 'SOURCE', says: 'github or servicenow (default: how the name of the event file begins)' },
    'github-event': { value: 'NAME', says: 'what GitHub calls the event (default: by what is in it)' },
  },
  async run(call) {
    const eventFile = call.text('event');
    if (!eventFile) throw new UsageError('name a sample event with --event');
    const checked = await checkWorkflowFile(call.positional(0));
    if ('problems' in checked) {
      printChecked(call, checked);
      return EXIT.failed;
    }
    const source = sourceOf(call, eventFile);
    const payload = payloadOf(eventFile);
    const event = source === 'github' ? githubEvent(call, payload) : undefined;
    const plan = await call.api().simulateWorkflow({ workflow: checked.text, source, event, payload });
    if (call.json) call.printJson(plan);
    else for (const line of planInWords(printable(plan), call.terminal)) call.terminal.print(line);
    return EXIT_OF[plan.outcome];
  },
};

function payloadOf(file: string): Record<string, unknown> {
  const payload = parse(read(file).toString('utf8'));
  if (!payload) throw new UsageError(`${file} is not JSON`);
  return payload;
}

/** GitHub says it in a header, which a file does not have. */
function githubEvent(call: Call, payload: Record<string, unknown>): string {
  const event = call.text('github-event') ?? (payload.issue ? 'issues' : payload.pull_request && 'pull_request');
  if (typeof event === 'string') return event;
  throw new UsageError('say with --github-event what GitHub calls this event');
}
