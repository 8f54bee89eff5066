import type { ResponseFrom } from '../../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command, Option } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../failure.ts';
import { readFile } from '../read-file.ts';
import { findRunId } from './find-run.ts';

const KEY: Record<string, Option> = {
  'idempotency-key': { value: 'KEY', description: 'the same request with the same key starts nothing again' },
};
export const INPUTS: Record<string, Option> = {
  input: { value: 'NAME=VALUE', repeatable: true, description: 'an input; VALUE is JSON, or else text' },
  inputs: { value: 'FILE', description: 'JSON file with inputs; --input overrides it' },
};
const EARLIER = 'an earlier request with this key started it';
const GIVEN: Record<string, Option> = {
  ...INPUTS,
  title: { value: 'TEXT', description: 'title of the run' },
  subject: { value: 'TEXT', description: 'what the run is about' },
  ...KEY,
};

export const runsStart: readonly Command[] = [
  {
    name: 'runs start',
    args: ['WORKFLOW'],
    description: 'start a run of a workflow',
    details: 'For example: countersign runs start restart-service --input service=payments',
    options: {
      'workflow-version': {
        value: 'NUMBER',
        description: 'version of the workflow: the newest (default), or one that an automation runs',
      },
      automation: {
        value: 'NAME',
        description: 'automation of the run, which policies see (default: the name of the workflow)',
      },
      ...GIVEN,
    },
    async run(call) {
      const version = call.numberOption('workflow-version');
      const workflow = { name: call.arg(0), ...(version !== undefined && { version }) };
      const automation = call.option('automation');
      const body = { workflow, ...(automation !== undefined && { automation }), ...givenBy(call) };
      return printStarted(call, await call.api().create('POST /api/v1/runs', { body, headers: keyOf(call) }));
    },
  },
  {
    name: 'automations run',
    args: ['NAME'],
    description: 'start a run of an automation now',
    options: GIVEN,
    async run(call) {
      const request = { params: { name: call.arg(0) }, body: givenBy(call), headers: keyOf(call) };
      return printStarted(call, await call.api().create('POST /api/v1/automations/{name}/run', request));
    },
  },
  {
    name: 'runs rerun',
    args: ['ID'],
    description: 'start a new run with the trigger of a run that has ended',
    details: 'You become a maker of its writes, so you cannot approve them.',
    options: { newest: { description: 'use the newest version of the workflow (default: the same version)' }, ...KEY },
    async run(call) {
      const api = call.api();
      const params = { id: await findRunId(api, call.arg(0)) };
      const body = { workflowVersion: call.isSet('newest') ? ('newest' as const) : ('same' as const) };
      return printStarted(
        call,
        await api.create('POST /api/v1/runs/{id}/rerun', { params, body, headers: keyOf(call) }),
      );
    },
  },
  {
    name: 'runs replay',
    args: ['ID'],
    description: 'repeat an ended run from a step; no write is made twice',
    details:
      'Earlier steps keep their outputs, and approval steps are asked again.\n' +
      'Without --step, it begins with the first step that did not succeed.',
    options: { step: { value: 'STEP', description: 'first step to repeat' }, ...KEY },
    async run(call) {
      const api = call.api();
      const params = { id: await findRunId(api, call.arg(0)) };
      const step = call.option('step');
      const body = step === undefined ? {} : { step };
      return printStarted(
        call,
        await api.create('POST /api/v1/runs/{id}/replay', { params, body, headers: keyOf(call) }),
      );
    },
  },
];

function keyOf(call: Call): Record<string, string> {
  const key = call.option('idempotency-key');
  return key === undefined ? {} : { 'idempotency-key': key };
}

function givenBy(call: Call) {
  const inputs = inputsOf(call);
  const [title, subject] = [call.option('title'), call.option('subject')];
  return {
    ...(inputs && { inputs }),
    ...(title !== undefined && { title }),
    ...(subject !== undefined && { subject }),
  };
}

type Inputs = Record<string, never>;

/** The inputs of `--inputs FILE` and `--input NAME=VALUE`; undefined if there are none. */
export function inputsOf(call: Call): Inputs | undefined {
  const file = call.option('inputs');
  const pairs = call.options('input');
  if (file === undefined && pairs.length === 0) return undefined;
  const fromFile = file === undefined ? {} : objectIn(file);
  const given = pairs.map((pair) => {
    const at = pair.indexOf('=');
    if (at <= 0) throw new UsageError(`--input must be NAME=VALUE, not "${pair}"`);
    return [pair.slice(0, at), jsonOrText(pair.slice(at + 1))];
  });
  return { ...fromFile, ...Object.fromEntries(given) } as Inputs;
}

function objectIn(file: string): object {
  try {
    const content: unknown = JSON.parse(readFile(file).toString('utf8'));
    if (typeof content === 'object' && content !== null && !Array.isArray(content)) return content;
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
  }
  throw new UsageError(`${file} is not a JSON object`);
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

interface Started {
  isNew: boolean;
  body: ResponseFrom<'POST /api/v1/runs'>;
}

/** `earlier` says why nothing new was started. */
export function printStarted(call: Call, { isNew, body }: Started, earlier = EARLIER): ExitCode {
  if (call.json) call.printJson({ ...body, isNew });
  else {
    const { runId, workflow } = body;
    const what = isNew ? 'started' : `not started again, ${earlier}`;
    call.terminal.print(printable(`${runId} ${what}: ${workflow.name} v${workflow.version}`));
    call.terminal.note(`follow it with npx countersign runs watch ${runId.slice(0, 12)}`);
  }
  return EXIT.ok;
}
