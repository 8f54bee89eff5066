import { type Flip, opensUp } from '../../lambdas/policy/replay.ts';
import type { Call, Command } from './command.ts';
import { EXIT, UsageError } from './failure.ts';
import { POLICIES_OPTION, readPolicyFolder } from './policy-folder.ts';
import { outcomeInWords } from './policy-words.ts';
import { shortRunIds } from './run-reference.ts';
import { type Cell, type Column, table } from './table.ts';
import { printable } from './terminal.ts';

/** A long replay says now and then that it is alive. */
const PROGRESS_EVERY_RUNS = 100;

interface Replayed {
  runs: number;
  examined: number;
  flips: Flip[];
}

export const policyReplay: Command = {
  name: 'policy replay',
  takes: [],
  says: 'which recorded decisions other policies would make otherwise',
  details:
    'Nothing is changed by it. If anything that was denied would be allowed, the exit code is 1,\n' +
    'unless you say --acknowledge after having looked.',
  options: {
    ...POLICIES_OPTION,
    since: { value: 'TIME', says: 'only runs since then, 2026-03-01 or 2026-03-01T09:00:00Z (default: all)' },
    acknowledge: { says: 'exit with 0 even if something denied would be allowed' },
  },
  async run(call) {
    const folder = call.text('policies');
    if (folder === undefined) throw new UsageError('name the folder of the changed policies with --policies');
    const replayed = await replayAll(call, folder);
    const opened = replayed.flips.filter(opensUp).length;
    if (call.json) call.printJson(replayed);
    else printFlips(call, printable(replayed), opened);
    return opened > 0 && !call.isSet('acknowledge') ? EXIT.failed : EXIT.ok;
  },
};

async function replayAll(call: Call, folder: string): Promise<Replayed> {
  const api = call.api();
  const policies = readPolicyFolder(folder);
  const since = sinceOf(call);
  const all: Replayed = { runs: 0, examined: 0, flips: [] };
  let cursor: string | null = null;
  do {
    const page = await api.replayPolicies({ policies, since, ...(cursor !== null && { cursor }) });
    all.runs += page.runs;
    all.examined += page.examined;
    all.flips.push(...page.flips);
    cursor = page.nextCursor;
    if (cursor !== null && call.terminal.isInteractive && all.runs % PROGRESS_EVERY_RUNS === 0) {
      call.terminal.note(`${all.examined} decisions of ${all.runs} runs so far, ${all.flips.length} flip`);
    }
  } while (cursor !== null);
  return all;
}

function sinceOf(call: Call): string | undefined {
  const text = call.text('since');
  if (text === undefined) return undefined;
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) throw new UsageError(`--since ${text} is not a time; it looks like 2026-03-01`);
  return at.toISOString();
}

function printFlips({ terminal }: Call, { runs, examined, flips }: Replayed, opened: number): void {
  if (flips.length > 0) {
    const short = terminal.isInteractive ? shortRunIds(flips.map(({ runId }) => runId)) : (runId: string) => runId;
    const columns: Column[] = [
      { title: 'RUN' },
      { title: 'STEP' },
      { title: 'TOOL' },
      { title: 'TARGET', keeps: 'end' },
      { title: 'WAS' },
      { title: 'WOULD BE' },
      { title: 'BECAUSE', keeps: 'start' },
    ];
    const row = (flip: Flip): Cell[] => [
      short(flip.runId),
      flip.step,
      flip.tool,
      flip.target,
      outcomeInWords(flip.from),
      { text: outcomeInWords(flip.to), tone: opensUp(flip) ? 'bad' : 'waiting' },
      flip.reasons.join('; '),
    ];
    for (const line of table(columns, flips.map(row), terminal)) terminal.print(line);
  }
  terminal.print(
    `${examined} decisions of ${runs} runs: ${flips.length === 0 ? 'none would flip' : `${flips.length} would flip`}`,
  );
  if (opened > 0) {
    terminal.note(
      `${opened} that ${opened === 1 ? 'was' : 'were'} denied would be allowed; look at each, then --acknowledge`,
    );
  }
}
