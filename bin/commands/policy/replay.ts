import type { Flip } from '../../../lambdas/policy/replay.ts';
import { Page } from '../../terminal/page.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { counted } from '../evidence/evidence-text.ts';
import { EXIT, UsageError } from '../failure.ts';
import { shortRunIds } from '../runs/find-run.ts';
import { POLICIES_OPTION, readPolicyFolder } from './policy-folder.ts';
import { outcomeInWords } from './policy-text.ts';

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
    'Nothing is changed by it. A flip loosens where something denied could happen, or where fewer people,\n' +
    'of a lower tier or of any group, would have to agree. If any does, the exit code is 1, unless you\n' +
    'say --acknowledge after having looked.',
  options: {
    policies: { ...POLICIES_OPTION.policies, required: true },
    since: { value: 'TIME', says: 'only runs since then, 2026-03-01 or 2026-03-01T09:00:00Z (default: all)' },
    acknowledge: { says: 'exit with 0 even if something loosens' },
  },
  async run(call) {
    const folder = call.text('policies');
    if (folder === undefined) throw new UsageError('name the folder of the changed policies with --policies');
    const replayed = await replayAll(call, folder);
    const loosened = replayed.flips.filter(({ loosens }) => loosens).length;
    if (call.json) call.printJson(replayed);
    else printFlips(call, printable(replayed), loosened);
    return loosened > 0 && !call.isSet('acknowledge') ? EXIT.failed : EXIT.ok;
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

function printFlips({ terminal }: Call, { runs, examined, flips }: Replayed, loosened: number): void {
  const page = new Page(terminal);
  const short = terminal.isInteractive ? shortRunIds(flips.map(({ runId }) => runId)) : (runId: string) => runId;
  for (const { runId, step, tool, target, from, to, loosens, reasons } of flips) {
    page.field(loosens ? 'loosens' : 'tightens', `${short(runId)} ${step}: ${tool} at ${page.short(target)}`);
    const because = reasons.length > 0 ? `: ${reasons.join('; ')}` : '';
    page.field('', `${outcomeInWords(from)} → ${outcomeInWords(to)}${because}`, loosens ? 'bad' : 'waiting');
  }
  const loosening = loosened === 0 ? 'none loosens' : `${loosened} ${loosened === 1 ? 'loosens' : 'loosen'}`;
  const flipped = flips.length === 0 ? 'none would flip' : `${flips.length} would flip, ${loosening}`;
  page.line(`${counted(examined, 'decision')} of ${counted(runs, 'run')}: ${flipped}`);
  if (loosened > 0) terminal.note('less would stand in the way of what loosens; look at each, then say --acknowledge');
}
