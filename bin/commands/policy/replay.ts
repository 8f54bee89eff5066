import type { ResponseFrom } from '../../../client/api-client.ts';
import type { Flip, Outcome } from '../../../lambdas/policy/replay.ts';
import { requirementText } from '../../../lambdas/run/events/requirement-text.ts';
import { counted } from '../../terminal/counted.ts';
import { Page } from '../../terminal/page.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, UsageError } from '../failure.ts';
import { shortRunIds } from '../runs/find-run.ts';
import { POLICIES_OPTION, readPolicyFolder } from './policy-folder.ts';

const PROGRESS_EVERY_RUNS = 100;

type ReplayPage = ResponseFrom<'POST /api/v1/policies/replay'>;

interface Replayed {
  runs: number;
  examined: number;
  flips: Flip[];
}

export const policyReplay: Command = {
  name: 'policy replay',
  args: [],
  description: 'show which recorded decisions other policies would change',
  details:
    'Changes nothing. A decision loosens if a denied write would be allowed, or if fewer people, a lower\n' +
    'tier or more groups could approve it.\n' +
    'Exit code: 1 if any decision loosens, unless you pass --acknowledge.',
  options: {
    policies: { ...POLICIES_OPTION.policies, required: true },
    since: { value: 'TIME', description: 'only runs since 2026-03-01 or 2026-03-01T09:00:00Z (default: all)' },
    acknowledge: { description: 'exit with 0 even if a decision loosens' },
  },
  async run(call) {
    const folder = call.option('policies');
    if (folder === undefined) throw new UsageError('--policies is required: the folder of the changed policies');
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
    const page: ReplayPage = await api.call('POST /api/v1/policies/replay', {
      body: { policies, since, ...(cursor !== null && { cursor }) },
    });
    all.runs += page.runs;
    all.examined += page.examined;
    all.flips.push(...page.flips);
    cursor = page.nextCursor;
    if (cursor !== null && call.terminal.isInteractive && all.runs % PROGRESS_EVERY_RUNS === 0) {
      call.terminal.note(`${all.examined} decisions of ${all.runs} runs so far, ${all.flips.length} would change`);
    }
  } while (cursor !== null);
  return all;
}

function sinceOf(call: Call): string | undefined {
  const text = call.option('since');
  if (text === undefined) return undefined;
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) throw new UsageError(`--since ${text} is not a time; example: 2026-03-01`);
  return at.toISOString();
}

/** `needs_approval (2 people for medium risk, from sre)` */
export function outcomeText(outcome: Outcome): string {
  if (outcome.verdict !== 'needs_approval') return outcome.verdict;
  return `needs_approval (${requirementText(outcome.requirement)})`;
}

function printFlips({ terminal }: Call, { runs, examined, flips }: Replayed, loosened: number): void {
  const page = new Page(terminal);
  const short = terminal.isInteractive ? shortRunIds(flips.map(({ runId }) => runId)) : (runId: string) => runId;
  for (const { runId, step, tool, target, from, to, loosens, reasons } of flips) {
    page.field(loosens ? 'loosens' : 'tightens', `${short(runId)} ${step}: ${tool} at ${page.short(target)}`);
    const why = reasons.length > 0 ? `: ${reasons.join('; ')}` : '';
    page.field('', `${outcomeText(from)} → ${outcomeText(to)}${why}`, loosens ? 'bad' : 'waiting');
  }
  const loosening = loosened === 0 ? 'none loosens' : `${loosened} ${loosened === 1 ? 'loosens' : 'loosen'}`;
  const flipped = flips.length === 0 ? 'none would change' : `${flips.length} would change, ${loosening}`;
  page.line(`${counted(examined, 'decision')} of ${counted(runs, 'run')}: ${flipped}`);
  if (loosened > 0) terminal.note('review each decision that loosens, then pass --acknowledge');
}
