import { parseArgs } from 'node:util';
import { approvalsDecide, runsDecide } from './approvals-decide.ts';
import { approvalsList } from './approvals-list.ts';
import { approvalsShow } from './approvals-show.ts';
import { Call, type Command, GLOBAL_OPTIONS } from './command.ts';
import { evidenceAudit } from './evidence-audit.ts';
import { evidenceGet } from './evidence-get.ts';
import { evidenceHtml } from './evidence-html.ts';
import { evidenceShow } from './evidence-show.ts';
import { evidenceVerify } from './evidence-verify.ts';
import { EXIT, type ExitCode, Failure, UsageError } from './failure.ts';
import { groupHelp, helpOf, overview, usageOf } from './help.ts';
import { policyPublish } from './policy-publish.ts';
import { policyReplay } from './policy-replay.ts';
import { policyTest } from './policy-test.ts';
import { redrive } from './redrive.ts';
import { runsControl } from './runs-control.ts';
import { runsList } from './runs-list.ts';
import { runsShow } from './runs-show.ts';
import { runsWatch } from './runs-watch.ts';
import type { Terminal } from './terminal.ts';
import { webhookSend } from './webhook-send.ts';
import { workflowCommands } from './workflow-commands.ts';

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
  ...workflowCommands,
  policyTest,
  policyReplay,
  policyPublish,
  evidenceGet,
  evidenceVerify,
  evidenceShow,
  evidenceHtml,
  evidenceAudit,
  redrive,
];

/** Reads a command line, runs its command, and says with which code to exit. */
export async function runCommandLine(
  argv: string[],
  environment: NodeJS.ProcessEnv,
  terminal: Terminal,
): Promise<ExitCode> {
  let command: Command | undefined;
  try {
    const { values, positionals } = readArguments(argv);
    const [group = '', verb = ''] = positionals;
    const ofGroup = COMMANDS.filter(({ name }) => name.startsWith(`${group} `));
    command = COMMANDS.find(({ name }) => name === `${group} ${verb}` || name === group);
    const rest = positionals.slice(command?.name.split(' ').length);
    if (values.help) {
      terminal.print(command ? helpOf(command) : ofGroup.length > 0 ? groupHelp(ofGroup) : overview(COMMANDS));
      return EXIT.ok;
    }
    if (!command) throw unknownCommand(group, verb, ofGroup);
    assertTakes(command, values, rest);
    return await command.run(new Call(terminal, environment, { values, positionals: rest }));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    terminal.note(error.message);
    if (error instanceof UsageError) terminal.note(`\n${command ? usageOf(command) : overview(COMMANDS)}`);
    return error.exitCode;
  }
}

/** Options may stand anywhere; which command they belong to is known only after reading them all. */
function readArguments(argv: string[]) {
  const all = Object.assign({}, GLOBAL_OPTIONS, ...COMMANDS.map(({ options }) => options)) as Command['options'];
  const options = Object.fromEntries(
    Object.entries(all).map(([name, { value, many = false }]) => [
      name,
      { type: value ? 'string' : 'boolean', multiple: many } as const,
    ]),
  );
  try {
    return parseArgs({
      args: argv,
      options: { ...options, help: { type: 'boolean', short: 'h' } },
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

function unknownCommand(group: string, verb: string, ofGroup: Command[]): UsageError {
  if (!group) return new UsageError('name a command');
  if (ofGroup.length === 0) return new UsageError(`there is no command "${group}"`);
  const verbs = ofGroup.map(({ name }) => name.split(' ')[1]).join(', ');
  return new UsageError(
    verb ? `there is no command "${group} ${verb}"; ${group} knows ${verbs}` : `${group} what? One of: ${verbs}`,
  );
}
