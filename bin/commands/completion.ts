import { didYouMean } from '../../lambdas/entry/did-you-mean.ts';
import { type Command, GLOBAL_OPTIONS, type Option } from './command.ts';
import { allCommands } from './commands.ts';
import { EXIT, UsageError } from './failure.ts';

export const completion: Command = {
  name: 'completion',
  args: ['SHELL'],
  description: 'print the completion script of bash, zsh or fish',
  details:
    'bash: source <(countersign completion bash)\n' +
    'zsh:  source <(countersign completion zsh)\n' +
    'fish: countersign completion fish | source',
  offline: true,
  options: {},
  async run(call) {
    const shell = call.arg(0);
    const script = SCRIPTS[shell];
    if (!script) {
      const hint = didYouMean(shell, Object.keys(SCRIPTS)) || '; use bash, zsh or fish';
      throw new UsageError(`there is no completion for "${shell}"${hint}`);
    }
    call.terminal.print(script(await allCommands()));
    return EXIT.ok;
  },
};

const SCRIPTS: Readonly<Record<string, (commands: readonly Command[]) => string>> = {
  bash: (commands) =>
    [
      '_countersign() {',
      '  local choices=""',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the shell
      '  case "${COMP_WORDS[*]:1:COMP_CWORD-1}" in',
      ...cases(commands, (choices) => `choices="${choices.join(' ')}"`),
      '  esac',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the shell
      '  COMPREPLY=($(compgen -W "$choices" -- "${COMP_WORDS[COMP_CWORD]}"))',
      '}',
      'complete -o default -F _countersign countersign',
    ].join('\n'),
  zsh: (commands) =>
    [
      '#compdef countersign',
      '_countersign() {',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the shell
      '  case "${words[2,CURRENT-1]}" in',
      ...cases(commands, (choices) => `compadd -- ${choices.join(' ')}; _files`),
      '  esac',
      '}',
      'compdef _countersign countersign',
    ].join('\n'),
  fish: (commands) => [...fishGroups(commands), ...commands.flatMap(fishCommand)].join('\n'),
};

/** What can follow the words before the cursor: first the groups, then the commands of a group, then options. */
function cases(commands: readonly Command[], line: (choices: string[]) => string): string[] {
  const one = (pattern: string, choices: string[]) => `    ${pattern}) ${line(choices)} ;;`;
  const options = (command: Command) => Object.keys(optionsOf(command)).map((name) => `--${name}`);
  return [
    one("''", [...new Set(commands.map(groupOf))]),
    ...[...new Set(commands.map(groupOf))].flatMap((group) => {
      const verbs = commands.filter((each) => groupOf(each) === group).flatMap((each) => verbOf(each) ?? []);
      return verbs.length > 0 ? [one(`'${group}'`, verbs)] : [];
    }),
    ...commands.map((command) => one(`'${command.name}'|'${command.name} '*`, options(command))),
  ];
}

const groupOf = ({ name }: Command): string => name.split(' ')[0] ?? name;
const verbOf = ({ name }: Command): string | undefined => name.split(' ')[1];

function optionsOf({ options, offline }: Command): Record<string, Option> {
  const { url, key, ...others } = GLOBAL_OPTIONS;
  return { ...(offline ? others : { ...others, url, key }), ...options } as Record<string, Option>;
}

function fishGroups(commands: readonly Command[]): string[] {
  const groups = [...new Set(commands.map(groupOf))];
  return groups.map((group) => {
    const only = commands.find(({ name }) => name === group);
    return `complete -c countersign -f -n __fish_use_subcommand -a ${group}${only ? ` -d ${quoted(only.description)}` : ''}`;
  });
}

function fishCommand(command: Command): string[] {
  const [group, verb] = [groupOf(command), verbOf(command)];
  const inGroup = `__fish_seen_subcommand_from ${group}`;
  const inCommand = verb ? `${inGroup}; and __fish_seen_subcommand_from ${verb}` : inGroup;
  const options = Object.entries(optionsOf(command)).map(
    ([name, { value, description }]) =>
      `complete -c countersign -n ${quoted(inCommand)} -l ${name}${value ? ' -r' : ''} -d ${quoted(description)}`,
  );
  if (!verb) return options;
  const offered = `complete -c countersign -n ${quoted(`${inGroup}; and not __fish_seen_subcommand_from ${verb}`)}`;
  return [`${offered} -f -a ${verb} -d ${quoted(command.description)}`, ...options];
}

const quoted = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;
