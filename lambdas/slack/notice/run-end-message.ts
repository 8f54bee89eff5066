import type { Run, TerminalRun, TerminalStatus } from '../../run/run.ts';
import { bold, escapedText, type Inline, link, type Message, ownText, quoted, richText } from '../block-kit.ts';

const TITLE_MAX_CHARACTERS = 150;
const REASON_MAX_CHARACTERS = 300;
const NAME_MAX_CHARACTERS = 63;

const ENDINGS: Record<TerminalStatus, string> = {
  succeeded: 'Succeeded',
  failed_terminal: 'Failed',
  needs_human: 'Needs a human',
  timed_out: 'Timed out',
  canceled: 'Canceled',
};

const titleOf = ({ enrichment, subject, runId }: Run): string => enrichment?.title ?? subject ?? runId;

/** People recognize the title; it is text of other systems, so it is shown as a quote. The id comes last. */
export function runEndMessage(run: TerminalRun, consoleUrl: string | undefined): Message {
  const { status, automation, error } = run;
  const title = titleOf(run);
  const lines: Inline[][] = [
    [bold(ENDINGS[status]), ownText(': '), quoted(title, TITLE_MAX_CHARACTERS)],
    ...(error ? [[ownText(`${error.code}: `), quoted(error.message, REASON_MAX_CHARACTERS)]] : []),
    [ownText('Automation '), quoted(automation, NAME_MAX_CHARACTERS), ownText('. '), ...whereToLook(run, consoleUrl)],
  ];
  return { text: escapedText(`${ENDINGS[status]}: ${title}`), blocks: [richText(lines)] };
}

function whereToLook({ runId }: Pick<Run, 'runId'>, consoleUrl: string | undefined): Inline[] {
  const command = ownText(`countersign runs show ${runId}`);
  if (consoleUrl === undefined) return [command];
  return [link(`${consoleUrl}/runs/${encodeURIComponent(runId)}`, 'Show the run'), ownText(' or '), command];
}

/** In the thread people know what the run is about. */
export const progressMessage = (run: Run, text: string, consoleUrl: string | undefined): Message => ({
  text: escapedText(text),
  blocks: [richText([[ownText(`${text} `), ...whereToLook(run, consoleUrl)]])],
});
