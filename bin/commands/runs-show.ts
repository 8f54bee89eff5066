import type { Reversal } from '../../lambdas/run/receipt.ts';
import type { Api, RunDetail, ShownReceipt } from './api.ts';
import type { Command } from './command.ts';
import { EXIT } from './failure.ts';
import { findRunId } from './run-reference.ts';
import { errorInWords, eventInWords, eventTone, statusCell, withShortIds } from './run-words.ts';
import { type Cell, cut, table } from './table.ts';
import { printable, type Terminal, type Tone } from './terminal.ts';
import { ago, clockTime, dateAndTime, duration } from './times.ts';

export const runsShow: Command = {
  name: 'runs show',
  takes: ['ID'],
  says: 'one run: its steps, receipts, commits and evidence',
  details: 'A beginning of the id is enough, as long as only one of the newest 100 runs has it.',
  options: {},
  async run(call) {
    const api = call.api();
    const run = await wholeRun(api, await findRunId(api, call.positional(0)));
    if (call.json) call.printJson(run);
    else new RunPage(printable(run), call.terminal).print();
    return EXIT.ok;
  },
};

/** A long run has more commits than its page holds; the rest is fetched, so that what is shown is the whole chain. */
async function wholeRun(api: Api, runId: string): Promise<RunDetail> {
  const { moreCommitsSince, ...run } = await api.run(runId);
  const commits = [...run.commits];
  for (let since = moreCommitsSince; since !== undefined; ) {
    const page = await api.events(runId, since);
    commits.push(...page.commits);
    since = page.more && page.commits.length > 0 ? page.next : undefined;
  }
  return { ...run, commits };
}

class RunPage {
  readonly #run: RunDetail;
  readonly #terminal: Terminal;

  constructor(run: RunDetail, terminal: Terminal) {
    this.#run = run;
    this.#terminal = terminal;
  }

  print(): void {
    this.#printHeader();
    this.#printSteps();
    this.#printReceipts();
    this.#printCommits();
    this.#printEvidence();
  }

  #printHeader(): void {
    const { runId, status, title, subject, automation, workflow, trigger, error } = this.#run;
    const { text, tone } = withTone(statusCell(status));
    this.#terminal.print(`${this.#terminal.paint('strong', runId)}  ${this.#terminal.paint(tone, text)}`);
    if (title) this.#line(title);
    this.#terminal.print('');
    this.#field('subject', subject ?? '-');
    this.#field('automation', automation);
    this.#field('workflow', `${workflow.name}, version ${workflow.version}`);
    this.#field('trigger', `${trigger.source} ${trigger.event}`);
    for (const [name, when] of this.#times()) this.#field(name, when);
    if (error) this.#field('error', errorInWords(error), 'bad');
  }

  #times(): [name: string, when: string][] {
    const { createdAt, startedAt, completedAt, deadlineAt } = this.#run;
    const since = (at: string) => `${clockTime(at)}, ${duration(Date.parse(at) - Date.parse(createdAt))} after`;
    return [
      ['accepted', `${dateAndTime(createdAt)}, ${ago(createdAt, Date.now())}`],
      ['started', startedAt ? since(startedAt) : 'not yet'],
      completedAt ? ['ended', since(completedAt)] : ['deadline', dateAndTime(deadlineAt)],
    ];
  }

  #printSteps(): void {
    this.#heading('STEPS');
    const rows = this.#run.steps.map((step): Cell[] => {
      const receiptKey = 'receiptKey' in step ? step.receiptKey : undefined;
      const receipt = this.#run.receipts.find(({ key }) => key === receiptKey);
      const skipped = 'skipped' in step && step.skipped;
      const attempt = 'attempt' in step && step.attempt > 0 ? String(step.attempt) : '-';
      const status = skipped ? 'skipped' : statusCell(step.status);
      return [step.id, step.tool, status, attempt, receipt ? this.#outcome(receipt) : '-'];
    });
    const columns = [
      { title: 'STEP' },
      { title: 'TOOL', keeps: 'start' },
      { title: 'STATUS' },
      { title: 'ATTEMPTS' },
      { title: 'RECEIPT', keeps: 'start' },
    ] as const;
    for (const line of table(columns, rows, this.#terminal)) this.#terminal.print(line);
    for (const step of this.#run.steps) {
      if ('error' in step) this.#line(`${step.id}: ${errorInWords(step.error)}`, 'bad');
    }
  }

  #outcome(receipt: ShownReceipt): string {
    if (receipt.runId !== this.#run.runId) return `${receipt.outcome}, made by ${this.#short(receipt.runId)}`;
    return receipt.outcome === 'succeeded' && receipt.recovered ? 'succeeded, recovered' : receipt.outcome;
  }

  #printReceipts(): void {
    if (this.#run.receipts.length === 0) return;
    this.#heading('RECEIPTS');
    for (const receipt of this.#run.receipts) {
      const { stepId, target, tool, fields } = receipt;
      this.#line(this.#short(`${stepId}: ${tool} at ${target}`));
      this.#field('  wrote', `${fields.join(', ')}: ${this.#outcome(receipt)}`);
      if (receipt.outcome === 'succeeded') this.#field('  undo', this.#short(undoInWords(receipt.reversal)));
      if ('error' in receipt) this.#field('  error', errorInWords(receipt.error), 'bad');
    }
  }

  #printCommits(): void {
    this.#heading('COMMITS');
    const width = String(this.#run.head.seq).length;
    for (const { seq, at, events } of this.#run.commits) {
      for (const [index, event] of events.entries()) {
        const when = index === 0 ? `${String(seq).padStart(width)}  ${clockTime(at)}` : ' '.repeat(width + 14);
        this.#line(`${when}  ${this.#short(eventInWords(event))}`, eventTone(event));
      }
    }
  }

  #printEvidence(): void {
    this.#heading('EVIDENCE');
    const { evidence, head } = this.#run;
    if (evidence) {
      this.#field('bundle', evidence.documentKey, undefined, true);
      this.#field('sha256', evidence.sha256, undefined, true);
      this.#field('sealed', `${dateAndTime(evidence.sealedAt)}, ${evidence.sizeBytes} bytes`);
    } else {
      this.#line(this.#run.completedAt ? 'is being sealed' : 'is sealed when the run has ended');
    }
    this.#field('head', `commit ${head.seq}, ${head.hash}`, undefined, true);
  }

  #heading(text: string): void {
    this.#terminal.print('');
    this.#terminal.print(this.#terminal.paint('strong', text));
  }

  /** What must be copied in full wraps at the terminal's edge; everything else is cut there. */
  #field(name: string, value: string, tone?: Tone, whole = false): void {
    const label = name.padEnd(12);
    const fitting = whole ? value : cut(value, this.#terminal.columns - label.length);
    this.#terminal.print(`${this.#terminal.paint('quiet', label)}${this.#terminal.paint(tone, fitting)}`);
  }

  #line(text: string, tone?: Tone): void {
    this.#terminal.print(this.#terminal.paint(tone, cut(text, this.#terminal.columns)));
  }

  #short(text: string): string {
    return this.#terminal.isInteractive ? withShortIds(text) : text;
  }
}

function undoInWords(reversal: Reversal): string {
  if ('irreversible' in reversal) return `cannot be undone: ${reversal.irreversible}`;
  return `${reversal.tool} ${JSON.stringify(reversal.input)}`;
}

const withTone = (cell: Cell): { text: string; tone?: Tone } => (typeof cell === 'string' ? { text: cell } : cell);
