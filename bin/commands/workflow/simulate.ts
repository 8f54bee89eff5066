import type * as z from 'zod';
import { parsed } from '../../../client/api-client.ts';
import type { PlanOutcome } from '../../../lambdas/plan/plan.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../failure.ts';
import { readFile } from '../read-file.ts';
import { sourceOf } from '../webhook/send.ts';
import { planText } from './plan-text.ts';
import { checkBeforeSending, printChecked } from './validate.ts';

const EXIT_OF: Record<PlanOutcome, ExitCode> = {
  runs: EXIT.ok,
  needs_approval: EXIT.ok,
  fails: EXIT.failed,
  denied: EXIT.refused,
};

export const workflowSimulate: Command = {
  name: 'workflow simulate',
  args: ['FILE'],
  description: 'show what a run would write, without writing',
  details: [
    "The server plans with the tenant's policies, and reads the targets with read-only credentials.",
    'Exit codes: 1 if the run would fail, 3 if a write would be denied.',
  ].join('\n'),
  options: {
    event: {
      value: 'FILE',
      required: true,
      description: 'sample event, for example events/github-issue-opened.json',
    },
    source: { value: 'SOURCE', description: 'github or servicenow (default: from the name of the event file)' },
    save: { description: 'save the plan for 24 hours, so that plan apply can start it' },
    'github-event': { value: 'NAME', description: 'GitHub event (default: from the content of the event file)' },
  },
  async run(call) {
    const eventFile = call.option('event');
    if (!eventFile) throw new UsageError('--event is required: the file with a sample event');
    const checked = await checkBeforeSending(call.arg(0));
    if ('problems' in checked) {
      printChecked(call, checked);
      return EXIT.failed;
    }
    const source = sourceOf(call, eventFile);
    if (source !== 'github' && source !== 'servicenow') throw new UsageError('--source must be github or servicenow');
    const payload = payloadOf(eventFile);
    const event = source === 'github' ? githubEvent(call, payload) : undefined;
    const save = call.isSet('save');
    const body = { workflow: checked.text, source, event, payload, save };
    const plan = await call.api().call('POST /api/v1/workflows/simulate', { body });
    if (call.json) call.printJson(plan);
    else for (const line of planText(printable(plan), call.terminal)) call.terminal.print(line);
    if (save && !call.json)
      call.terminal.note(`saved until ${plan.expiresAt}; npx countersign plan apply ${plan.planHash}`);
    return EXIT_OF[plan.outcome];
  },
};

type JsonObject = Record<string, z.core.util.JSONType>;

function payloadOf(file: string): JsonObject {
  const payload = parsed(readFile(file).toString('utf8'));
  if (!payload) throw new UsageError(`${file} is not a JSON object`);
  return payload as JsonObject;
}

/** GitHub sends the event in a header, which a file does not have. */
function githubEvent(call: Call, payload: JsonObject): string {
  const event = call.option('github-event') ?? (payload.issue ? 'issues' : payload.pull_request && 'pull_request');
  if (typeof event === 'string') return event;
  throw new UsageError('cannot derive the GitHub event from the file; pass --github-event, for example issues');
}
