import type { RequestFor, ResponseFrom } from '../../../client/api-client.ts';
import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import { type Api, Unavailable } from '../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, type ExitCode, Failure, UsageError } from '../failure.ts';
import { resolveBody } from './control.ts';
import { FILTER_OPTIONS, filterQuery } from './filter-options.ts';
import { countsText, runTable } from './list.ts';
import { noteUnknownNames } from './unknown-names.ts';

type BulkResponse = ResponseFrom<'POST /api/v1/runs/bulk'>;
type Asked = Extract<RequestFor<'POST /api/v1/runs/bulk'>['body'], { action: unknown }>;
type Preview = Extract<BulkResponse, { kind: 'preview' }>;
type Progress = Pick<BulkResponse, 'jobId' | 'action' | 'total' | 'processed' | 'counts' | 'finished'>;
type Job = ResponseFrom<'GET /api/v1/runs/bulk/{job}'>;

const ACTIONS = ['cancel', 'retry', 'rerun', 'resolve'] as const;
type Action = (typeof ACTIONS)[number];
const WORDS: readonly string[] = [...ACTIONS, 'resume', 'show'];
const SHOWN_PER_REASON_MAX = 3;
/** A request that got no response is sent again: the job continues where it stopped. */
const TRIES_MAX = 5;

export const runsBulk: Command = {
  name: 'runs bulk',
  args: ['ACTION', '[JOB]'],
  description: 'cancel, retry, rerun or resolve many runs',
  details:
    `ACTION: ${ACTIONS.join(', ')} with options that select the runs; or resume JOB, show JOB.\n` +
    'Shows the runs and asks before it acts. Ctrl-C stops after the current batch; resume continues.\n' +
    'Exit code: 0 if every run was changed, otherwise 1.',
  options: {
    ...FILTER_OPTIONS,
    reason: { value: 'TEXT', description: 'reason, stored in each run (cancel, resolve)' },
    as: { value: 'RESULT', description: 'succeeded or failed (resolve)' },
    write: {
      value: 'STEP=FINDING',
      repeatable: true,
      description: 'happened or did_not, for each write of unknown outcome (resolve)',
    },
    yes: { description: 'act without asking' },
  },
  async run(call) {
    const [word, job] = [call.arg(0), call.args[1]];
    const api = call.api();
    if (word === 'resume' || word === 'show') {
      assertOnly(call, word, []);
      if (job === undefined) throw new UsageError(`countersign runs bulk ${word} requires JOB, e.g. bulk_3f9c2a`);
      const found = await api.call('GET /api/v1/runs/bulk/{job}', { params: { job } });
      return word === 'show' ? printResult(call, found) : resume(call, api, found);
    }
    const action = ACTIONS.find((each) => each === word);
    if (!action)
      throw new UsageError(`unknown action "${word}"${didYouMean(word, WORDS) || `; actions: ${WORDS.join(', ')}`}`);
    if (job !== undefined) throw new UsageError(`countersign runs bulk ${action}: unexpected argument "${job}"`);
    assertOnly(call, action, [...Object.keys(FILTER_OPTIONS), ...TAKES[action]]);
    return start(call, api, action);
  },
};

/** The options of each action; a filter that has no effect must not look as if it had one. */
const TAKES: Record<Action, readonly string[]> = {
  cancel: ['reason', 'yes'],
  retry: ['yes'],
  rerun: ['yes'],
  resolve: ['reason', 'as', 'write', 'yes'],
};

function assertOnly(call: Call, word: string, options: readonly string[]): void {
  const given = Object.keys(runsBulk.options).filter(
    (name) => call.isSet(name) || call.option(name) !== undefined || call.options(name).length > 0,
  );
  const foreign = given.find((name) => !options.includes(name));
  if (foreign === undefined) return;
  const why = options.length === 0 ? '; the job has its runs and options' : '';
  throw new UsageError(`countersign runs bulk ${word} does not take --${foreign}${why}`);
}

async function start(call: Call, api: Api, action: Action): Promise<ExitCode> {
  const filter = filterQuery(call);
  if (Object.keys(filter).length === 0) {
    throw new UsageError('select the runs, e.g. --status queued --automation triage-incident');
  }
  const body = { action, filter, options: optionsOf(call, action) };
  const found = await api.call('POST /api/v1/runs/bulk', { body });
  if (found.kind !== 'preview') throw new Failure(EXIT.broken, 'the API did not return a preview');
  if (!call.json) printPreview(call, printable(found));
  if (found.total === 0) {
    if (call.json) call.printJson(found);
    else if (found.leftOut === 0) await noteUnknownNames(call.terminal, api, filter);
    return EXIT.ok;
  }
  if (!(await isConfirmed(call, found))) return EXIT.failed;
  return execute(call, api, found.token, found);
}

/** What the command for one run sends. The API refuses options that the action does not take. */
function optionsOf(call: Call, action: Action): NonNullable<Asked['options']> {
  if (action === 'resolve') return { ...resolveBody(call) };
  const reason = call.option('reason');
  return reason === undefined ? {} : { reason };
}

function printPreview({ terminal }: Call, { sample, total, leftOut, complete, byStatus, action }: Preview): void {
  if (total === 0) terminal.note(leftOut === 0 ? 'no run matches' : 'no run that matches can take this action');
  else for (const line of runTable(terminal, sample)) terminal.print(line);
  if (total > sample.length) terminal.print(`… and ${total - sample.length} more`);
  if (total > 0) terminal.print(`\n${action} ${runsText(total)}: ${countsText({ byStatus })}`);
  if (leftOut > 0) terminal.print(`${leftOut}${total > 0 ? ' more' : ''} match, but their status does not allow it`);
  if (!complete)
    terminal.print('more runs match than one job accepts; repeat the command for the others, or narrow the filter');
}

async function isConfirmed(call: Call, { action, total, jobId }: Preview): Promise<boolean> {
  if (call.isSet('yes')) return true;
  const answer = await call.terminal.ask(`\n${action} ${total === 1 ? 'this run' : `these ${total} runs`}? [y/N] `);
  if (answer === undefined) throw new UsageError('add --yes to act without a terminal to ask');
  if (/^y(es)?$/i.test(answer.trim())) return true;
  call.terminal.note(`nothing was changed; npx countersign runs bulk resume ${jobId} acts on the same runs`);
  return false;
}

function resume(call: Call, api: Api, job: Job): Promise<ExitCode> {
  if (job.finished) return printResult(call, job);
  if (job.token === null) throw new Failure(EXIT.failed, `only ${job.requestedBy} can resume ${job.jobId}`);
  return execute(call, api, job.token, job);
}

/** Sends the token until the job is finished or the person presses Ctrl-C. */
async function execute(call: Call, api: Api, token: string, begun: Progress): Promise<ExitCode> {
  let isStopped = false;
  const stop = () => {
    isStopped = true;
    call.terminal.note('\nstopping after this batch');
  };
  process.once('SIGINT', stop);
  try {
    let progress = begun;
    while (!progress.finished && !isStopped) {
      progress = await sendToken(api, token);
      if (!call.json) call.terminal.note(progressText(progress));
    }
    if (!progress.finished) {
      call.terminal.note(`stopped; continue with: npx countersign runs bulk resume ${progress.jobId}`);
      return EXIT.interrupted;
    }
    return printResult(call, await api.call('GET /api/v1/runs/bulk/{job}', { params: { job: progress.jobId } }));
  } catch (error) {
    call.terminal.note(`the job is not finished; continue with: npx countersign runs bulk resume ${begun.jobId}`);
    throw error;
  } finally {
    process.off('SIGINT', stop);
  }
}

async function sendToken(api: Api, token: string): Promise<BulkResponse> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await api.call('POST /api/v1/runs/bulk', { body: { token } });
    } catch (error) {
      if (!(error instanceof Unavailable) || tries === TRIES_MAX) throw error;
    }
  }
}

const progressText = ({ processed, total, counts: { done, refused, failed } }: Progress): string =>
  `${processed} of ${total}: ${done} changed${refused > 0 ? `, ${refused} refused` : ''}${failed > 0 ? `, ${failed} failed` : ''}`;

async function printResult(call: Call, job: Job): Promise<ExitCode> {
  const { terminal } = call;
  if (call.json) call.printJson(job);
  else {
    const { notChanged, action, jobId } = printable(job);
    terminal.print(`${action}, ${jobId}: ${progressText(job)}`);
    for (const reason of new Set(notChanged.map((each) => each.reason))) {
      const runs = notChanged.filter((each) => each.reason === reason).map(({ runId }) => runId);
      const more = runs.length > SHOWN_PER_REASON_MAX ? ' …' : '';
      terminal.print(`  ${runs.length} not changed: ${reason}`);
      terminal.print(`    ${runs.slice(0, SHOWN_PER_REASON_MAX).join(' ')}${more}`);
    }
    if (!job.finished) terminal.print(`continue with: npx countersign runs bulk resume ${jobId}`);
  }
  return job.notChanged.length === 0 && job.finished ? EXIT.ok : EXIT.failed;
}

const runsText = (count: number): string => (count === 1 ? '1 run' : `${count} runs`);
