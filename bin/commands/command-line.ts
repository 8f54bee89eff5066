import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Terminal } from '../terminal/terminal.ts';
import { approvalsDecide, runsDecide } from './approvals/decide.ts';
import { approvalsList } from './approvals/list.ts';
import { approvalsShow } from './approvals/show.ts';
import { Call, type Command, GLOBAL_OPTIONS } from './command.ts';
import { evidenceAudit } from './evidence/audit.ts';
import { evidenceGet } from './evidence/get.ts';
import { evidenceHtml } from './evidence/html.ts';
import { evidenceShow } from './evidence/show.ts';
import { evidenceVerify } from './evidence/verify.ts';
import { EXIT, type ExitCode, Failure, UsageError } from './failure.ts';
import { groupHelp, helpOf, overview, usageOf } from './help.ts';
import { outboxRedrive } from './outbox-redrive.ts';
import { changes } from './people/changes.ts';
import { people } from './people/people.ts';
import { policyPublish } from './policy/publish.ts';
import { policyReplay } from './policy/replay.ts';
import { policyTest } from './policy/test.ts';
import { redrive } from './redrive.ts';
import { runsControl } from './runs/control.ts';
import { runsList } from './runs/list.ts';
import { runsShow } from './runs/show.ts';
import { runsWatch } from './runs/watch.ts';
import { webhookSecrets } from './webhook/secrets.ts';
import { webhookSend } from './webhook/send.ts';
import { automations } from './workflow/automations.ts';
import { workflowPublish } from './workflow/publish.ts';
import { workflowSimulate } from './workflow/simulate.ts';
import { workflowValidate } from './workflow/validate.ts';

export const COMMANDS: readonly Command[] = [
  runsList,
  runsShow,
  runsWatch,
  ...runsDecide,
  ...runsControl,
  approvalsList,
  approvalsShow,
  ...approvalsDecide,
  webhookSend,
  webhookSecrets,
  workflowValidate,
  workflowSimulate,
  workflowPublish,
  ...automations,
  ...people,
  ...changes,
  policyTest,
  policyReplay,
  policyPublish,
  evidenceGet,
  evidenceVerify,
  evidenceShow,
  evidenceHtml,
  evidenceAudit,
  redrive,
  outboxRedrive,
];

/** Reads a command line, runs its command, and says with which code to exit. */
export async function runCommandLine(
  argv: string[],
  environment: NodeJS.ProcessEnv,
  terminal: Terminal,
): Promise<ExitCode> {
  let nearestHelp = helpNear(argv.filter((word) => !word.startsWith('-')));
  try {
    const { values, positionals } = readArguments(argv);
    if (values.version) {
      terminal.print(versionHere());
      return EXIT.ok;
    }
    const words = positionals[0] === 'help' ? positionals.slice(1) : positionals;
    const { command, ofGroup } = named(words);
    nearestHelp = helpNear(words);
    const wantsHelp = values.help === true || words !== positionals;
    if (wantsHelp && (command || ofGroup.length > 0 || words.length === 0)) {
      terminal.print(command ? helpOf(command) : ofGroup.length > 0 ? groupHelp(ofGroup) : overview(COMMANDS));
      return EXIT.ok;
    }
    if (!command) throw unknownCommand(words, ofGroup);
    const rest = words.slice(command.name.split(' ').length);
    assertTakes(command, values, rest);
    return await command.run(new Call(terminal, environment, { values, positionals: rest }));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // What is wrong comes last, where it is seen first.
    if (error instanceof UsageError && nearestHelp !== '') terminal.note(`${nearestHelp}\n`);
    terminal.note(error.message);
    return error.exitCode;
  }
}

/** The command that these words begin with, and all of its group. */
function named([group = '', verb = '']: readonly string[]): { command?: Command; ofGroup: Command[] } {
  return {
    command: COMMANDS.find(({ name }) => name === `${group} ${verb}` || name === group),
    ofGroup: COMMANDS.filter(({ name }) => name.startsWith(`${group} `)),
  };
}

/** As much as helps with what was called wrongly, and no more. */
function helpNear(words: readonly string[]): string {
  const { command, ofGroup } = named(words);
  if (command) return usageOf(command);
  return ofGroup.length > 0 ? groupHelp(ofGroup) : '';
}

function versionHere(): string {
  const file = readFileSync(join(import.meta.dirname, '..', '..', 'package.json'), 'utf8');
  return String(JSON.parse(file).version);
}

/** Options may stand anywhere; which command they belong to is known only after reading them all. */
function readArguments(argv: string[]) {
  const all = Object.assign({}, GLOBAL_OPTIONS, ...COMMANDS.map(({ options }) => options)) as Command['options'];
  const isMany = (name: string) => COMMANDS.some(({ options }) => options[name]?.many);
  const options = Object.fromEntries(
    Object.entries(all).map(([name, { value }]) => [
      name,
      { type: value ? 'string' : 'boolean', multiple: isMany(name) } as const,
    ]),
  );
  try {
    return parseArgs({
      args: argv,
      options: { ...options, help: { type: 'boolean', short: 'h' }, version: { type: 'boolean' } },
      allowPositionals: true,
    });
  } catch (error) {
    if (error instanceof TypeError && 'code' in error) throw new UsageError(firstSentence(error.message));
    throw error;
  }
}

/** Node goes on to explain how to give positionals that begin with a dash, which no command here takes. */
const firstSentence = (message: string) => message.split('. ')[0] ?? message;

function assertTakes(command: Command, values: object, positionals: string[]): void {
  const foreign = Object.keys(values).find((name) => !(name in command.options) && !(name in GLOBAL_OPTIONS));
  if (foreign) throw new UsageError(`countersign ${command.name} has no option --${foreign}`);
  const missing = command.takes[positionals.length];
  if (missing && !missing.startsWith('[')) throw new UsageError(`countersign ${command.name} needs ${missing}`);
  const surplus = command.takes.at(-1)?.endsWith('…') ? undefined : positionals[command.takes.length];
  if (surplus !== undefined) throw new UsageError(`countersign ${command.name} does not take "${surplus}"`);
}

const SEE_ALL = 'npx countersign help lists them';

function unknownCommand([group, verb]: readonly string[], ofGroup: Command[]): UsageError {
  if (!group) return new UsageError(`name a command; ${SEE_ALL}`);
  if (ofGroup.length === 0) return new UsageError(`there is no command "${group}"; ${SEE_ALL}`);
  const verbs = ofGroup.map(({ name }) => name.split(' ')[1]).join(', ');
  return new UsageError(
    verb ? `there is no command "${group} ${verb}"; ${group} knows ${verbs}` : `${group} what? One of: ${verbs}`,
  );
}
