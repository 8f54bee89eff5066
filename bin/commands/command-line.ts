import { parseArgs } from 'node:util';
import { didYouMean } from '../../lambdas/entry/did-you-mean.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { packageVersion } from '../version.ts';
import { keys } from './access/keys.ts';
import { login, logout } from './access/login.ts';
import { profiles } from './access/profiles.ts';
import { whoami } from './access/whoami.ts';
import { approvalsDecide, runsDecide } from './approvals/decide.ts';
import { approvalsList } from './approvals/list.ts';
import { approvalsShow } from './approvals/show.ts';
import { Call, type Command, GLOBAL_OPTIONS } from './command.ts';
import { completion } from './completion.ts';
import { deadLetters } from './dead-letters.ts';
import { evidenceAudit } from './evidence/audit.ts';
import { evidenceGet } from './evidence/get.ts';
import { evidenceHtml } from './evidence/html.ts';
import { evidenceShow } from './evidence/show.ts';
import { evidenceVerify } from './evidence/verify.ts';
import { EXIT, type ExitCode, Failure, UsageError } from './failure.ts';
import { groupHelp, helpOf, overview, usageOf } from './help.ts';
import { changes } from './people/changes.ts';
import { people } from './people/people.ts';
import { policyPublish } from './policy/publish.ts';
import { policyReplay } from './policy/replay.ts';
import { policyTest } from './policy/test.ts';
import { outboxRedrive, redrive } from './redrive.ts';
import { runsBulk } from './runs/bulk.ts';
import { runsControl } from './runs/control.ts';
import { runsList } from './runs/list.ts';
import { runsShow } from './runs/show.ts';
import { runsStart } from './runs/start.ts';
import { runsWatch } from './runs/watch.ts';
import { schedules } from './schedules.ts';
import { connections } from './setup/connections.ts';
import { doctor } from './setup/doctor.ts';
import { settings } from './setup/settings.ts';
import { tenantAdd } from './setup/tenant-add.ts';
import { sources } from './sources.ts';
import { status } from './status.ts';
import { webhookSecrets } from './webhook/secrets.ts';
import { webhookSend } from './webhook/send.ts';
import { webhookSetSecret } from './webhook/set-secret.ts';
import { automations } from './workflow/automations.ts';
import { workflowInit } from './workflow/init.ts';
import { planApply } from './workflow/plan-apply.ts';
import { workflowPublish } from './workflow/publish.ts';
import { workflowSimulate } from './workflow/simulate.ts';
import { workflowTest } from './workflow/test.ts';
import { tools } from './workflow/tools.ts';
import { workflowValidate } from './workflow/validate.ts';
import { workflowVersions } from './workflow/versions.ts';

export const COMMANDS: readonly Command[] = [
  status,
  runsList,
  runsShow,
  runsWatch,
  ...runsDecide,
  ...runsStart,
  ...runsControl,
  runsBulk,
  approvalsList,
  approvalsShow,
  ...approvalsDecide,
  webhookSend,
  webhookSecrets,
  workflowInit,
  ...webhookSetSecret,
  ...connections,
  ...settings,
  ...tenantAdd,
  doctor,
  workflowValidate,
  workflowTest,
  workflowSimulate,
  planApply,
  workflowPublish,
  ...workflowVersions,
  tools,
  ...automations,
  ...schedules,
  ...sources,
  login,
  logout,
  whoami,
  ...profiles,
  ...keys,
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
  ...deadLetters,
  redrive,
  outboxRedrive,
  completion,
];

/** Parses a command line, runs its command and returns the exit code. */
export async function runCommandLine(
  argv: string[],
  environment: NodeJS.ProcessEnv,
  terminal: Terminal,
): Promise<ExitCode> {
  let nearestHelp = helpNear(argv.filter((word) => !word.startsWith('-')));
  try {
    const { values, positionals } = parseArguments(argv);
    if (values.version) {
      terminal.print(packageVersion());
      return EXIT.ok;
    }
    const words = positionals[0] === 'help' ? positionals.slice(1) : positionals;
    const { command, group } = find(words);
    nearestHelp = helpNear(words);
    const wantsHelp = values.help === true || words !== positionals;
    if (wantsHelp && (command || group.length > 0 || words.length === 0)) {
      terminal.print(command ? helpOf(command) : group.length > 0 ? groupHelp(group) : overview(COMMANDS));
      return EXIT.ok;
    }
    if (!command) throw unknownCommand(words, group);
    const args = words.slice(command.name.split(' ').length);
    assertAccepts(command, values, args);
    return await command.run(new Call(terminal, environment, { values, args }));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // The message comes last, next to the prompt.
    if (error instanceof UsageError && nearestHelp !== '') terminal.note(`${nearestHelp}\n`);
    terminal.note(error.message);
    return error.exitCode;
  }
}

/** The command that these words name, and all commands of its group. */
function find([group = '', verb = '']: readonly string[]): { command?: Command; group: Command[] } {
  return {
    command: COMMANDS.find(({ name }) => name === `${group} ${verb}` || name === group),
    group: COMMANDS.filter(({ name }) => name.startsWith(`${group} `)),
  };
}

/** The usage of the command, or else the commands of its group. */
function helpNear(words: readonly string[]): string {
  const { command, group } = find(words);
  if (command) return usageOf(command);
  return group.length > 0 ? groupHelp(group) : '';
}

/** Options may precede the command, so the options of all commands are parsed together. */
function parseArguments(argv: string[]) {
  const all = Object.assign({}, GLOBAL_OPTIONS, ...COMMANDS.map(({ options }) => options)) as Command['options'];
  const isRepeatable = (name: string) => COMMANDS.some(({ options }) => options[name]?.repeatable);
  const options = Object.fromEntries(
    Object.entries(all).map(([name, { value }]) => [
      name,
      { type: value ? 'string' : 'boolean', multiple: isRepeatable(name) } as const,
    ]),
  );
  try {
    return parseArgs({
      args: argv,
      options: { ...options, help: { type: 'boolean', short: 'h' }, version: { type: 'boolean' } },
      allowPositionals: true,
    });
  } catch (error) {
    if (!(error instanceof TypeError && 'code' in error)) throw error;
    const option = /--[\w-]+/.exec(error.message)?.[0] ?? '';
    if (error.code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
      const { command } = find(argv.filter((word) => !word.startsWith('-')));
      const known = Object.keys({ ...(command?.options ?? all), ...GLOBAL_OPTIONS });
      throw new UsageError(unknownOption(option.slice(2), known) || (error.message.split('. ')[0] ?? ''));
    }
    const [sentence = ''] = error.message.split(/[.\n]/);
    throw new UsageError(sentence.endsWith('argument missing') ? `${option} requires a value` : sentence);
  }
}

const unknownOption = (name: string, known: readonly string[]) =>
  name && `unknown option --${name}${didYouMean(name, known, (close) => `--${close}`)}`;

function assertAccepts(command: Command, values: object, args: string[]): void {
  const known = Object.keys({ ...command.options, ...GLOBAL_OPTIONS });
  const foreign = Object.keys(values).find((name) => !known.includes(name));
  if (foreign) throw new UsageError(`countersign ${command.name}: ${unknownOption(foreign, known)}`);
  const missing = command.args[args.length];
  if (missing && !missing.startsWith('[')) throw new UsageError(`countersign ${command.name} requires ${missing}`);
  const surplus = /…]?$/.test(command.args.at(-1) ?? '') ? undefined : args[command.args.length];
  if (surplus !== undefined) throw new UsageError(`countersign ${command.name}: unexpected argument "${surplus}"`);
}

const SEE_ALL = 'npx countersign help lists all commands';

function unknownCommand([name, verb]: readonly string[], group: Command[]): UsageError {
  if (!name) return new UsageError(`no command given; ${SEE_ALL}`);
  if (group.length === 0) {
    const groups = [...new Set(COMMANDS.map(({ name }) => name.split(' ')[0] ?? ''))];
    return new UsageError(`unknown command "${name}"${didYouMean(name, groups) || `; ${SEE_ALL}`}`);
  }
  const verbs = group.map(({ name }) => name.split(' ')[1] ?? '');
  return new UsageError(
    verb
      ? `unknown command "${name} ${verb}"${didYouMean(verb, verbs) || `; ${name} has: ${verbs.join(', ')}`}`
      : `${name} requires a subcommand: ${verbs.join(', ')}`,
  );
}
