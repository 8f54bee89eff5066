import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { allCommands, COMMAND_NAMES, commandsFor } from '../../bin/commands/commands.ts';
import { piped } from './command-line.ts';

const scriptOf = async (shell: string) => (await piped(['completion', shell])).stdout;

/** What bash offers after these words, of which the last is unfinished. */
async function offered(...words: string[]): Promise<string[]> {
  const line = ['countersign', ...words].map((word) => `'${word}'`).join(' ');
  const script = `${await scriptOf('bash')}\nCOMP_WORDS=(${line}); COMP_CWORD=${words.length}; _countersign; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).split('\n').filter(Boolean);
}

describe('completion in bash', () => {
  it('offers groups, then commands, then options of the command', async () => {
    expect(await offered('app')).toEqual(['approvals']);
    expect(await offered('evidence', 'ver')).toEqual(['verify']);
    expect(await offered('runs', 'list', '--st')).toContain('--status');
    expect(await offered('evidence', 'verify', 'bundle.json', '--')).toEqual(
      expect.arrayContaining(['--key', '--json']),
    );
  });

  it('does not offer --url to a command that works offline', async () => {
    expect(await offered('evidence', 'verify', '--u')).toEqual([]);
    expect(await offered('runs', 'list', '--u')).toContain('--url');
  });
});

it.each(['bash', 'zsh', 'fish'])('the script of %s knows every command and option', async (shell) => {
  const script = await scriptOf(shell);
  for (const { name, options } of await allCommands()) {
    for (const word of name.split(' ')) expect(script).toContain(word);
    for (const option of Object.keys(options))
      expect(script).toContain(shell === 'fish' ? `-l ${option}` : `--${option}`);
  }
});

it('the table of commands names each under the module that has it', async () => {
  expect((await allCommands()).map(({ name }) => name)).toEqual(COMMAND_NAMES);
  for (const name of COMMAND_NAMES) {
    expect((await commandsFor(name.split(' '))).map((command) => command.name)).toContain(name);
  }
});

it('another shell is refused with the nearest name', async () => {
  const { exitCode, stderr } = await piped(['completion', 'fishh']);
  expect(exitCode).toBe(2);
  expect(stderr).toContain('did you mean "fish"');
});
