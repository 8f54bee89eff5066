import type * as z from 'zod';
import { parsed, type RequestFor } from '../../../client/api-client.ts';
import { githubEventIn } from '../../../lambdas/intake/github-event-in.ts';
import type { PlanOutcome } from '../../../lambdas/plan/plan.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../failure.ts';
import { readFile } from '../read-file.ts';
import { INPUTS, inputsOf } from '../runs/start.ts';
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
    'Without --event, it plans a start by you, with the inputs of --input and --inputs.',
    'Exit codes: 1 if the run would fail, 3 if a write would be denied.',
  ].join('\n'),
  options: {
    event: {
      value: 'FILE',
      description: 'sample event, for example events/github-issue-opened.json (default: you start the run)',
    },
    source: {
      value: 'SOURCE',
      description: 'github, servicenow or generic/NAME (default: from the name of the event file)',
    },
    ...INPUTS,
    title: { value: 'TEXT', description: 'title of the run, without --event' },
    subject: { value: 'TEXT', description: 'what the run is about, without --event' },
    save: { description: 'save the plan for 24 hours, so that plan apply can start it' },
    'github-event': { value: 'NAME', description: 'GitHub event (default: from the content of the event file)' },
  },
  async run(call) {
    const sample = sampleOf(call);
    const inputs = inputsOf(call);
    const checked = await checkBeforeSending(call.arg(0));
    if ('problems' in checked) {
      printChecked(call, checked);
      return EXIT.failed;
    }
    const save = call.isSet('save');
    const body = { workflow: checked.text, ...sample, ...(inputs && { inputs }), save };
    const plan = await call.api().call('POST /api/v1/workflows/simulate', { body });
    if (call.json) call.printJson(plan);
    else for (const line of planText(printable(plan), call.terminal)) call.terminal.print(line);
    if (save && !call.json)
      call.terminal.note(`saved until ${plan.expiresAt}; npx countersign plan apply ${plan.planHash}`);
    return EXIT_OF[plan.outcome];
  },
};

type Body = RequestFor<'POST /api/v1/workflows/simulate'>['body'];
type Sample = Pick<NonNullable<Body>, 'source' | 'sourceName' | 'event' | 'payload' | 'title' | 'subject'>;

/** What starts the planned run: the event of a file, or the caller. */
function sampleOf(call: Call): Sample {
  const file = call.option('event');
  if (file === undefined) {
    const useless = ['source', 'github-event'].find((name) => call.option(name) !== undefined);
    if (useless) throw new UsageError(`--${useless} describes an event; pass its file with --event`);
    return { source: 'manual', title: call.option('title'), subject: call.option('subject') };
  }
  const useless = ['title', 'subject'].find((name) => call.option(name) !== undefined);
  if (useless) throw new UsageError(`--${useless} is for a plan without --event; an event has its own`);
  const sender = sourceOf(call, file);
  const payload = payloadOf(file);
  if (sender === 'github') return { source: sender, event: githubEvent(call, payload), payload };
  if (call.option('github-event') !== undefined) throw new UsageError(`--github-event is not for events of ${sender}`);
  if (sender === 'servicenow') return { source: sender, payload };
  return { source: 'generic', sourceName: sender.slice('generic/'.length), payload };
}

function payloadOf(file: string): JsonObject {
  const payload = parsed(readFile(file).toString('utf8'));
  if (!payload) throw new UsageError(`${file} is not a JSON object`);
  return payload as JsonObject;
}

type JsonObject = Record<string, z.core.util.JSONType>;

function githubEvent(call: Call, payload: JsonObject): string {
  const event = call.option('github-event') ?? githubEventIn(payload);
  if (event !== undefined) return event;
  throw new UsageError('cannot derive the GitHub event from the file; pass --github-event, for example push');
}
