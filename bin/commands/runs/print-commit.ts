import type { Commit } from '../../../lambdas/run/commit.ts';
import { Page } from '../../terminal/page.ts';
import { printable } from '../../terminal/terminal.ts';
import { clockNear } from '../../terminal/times.ts';
import type { Call } from '../command.ts';
import { eventText, eventTone } from './event-text.ts';
import { eventEntries } from './step-rows.ts';

export function printCommit(
  { terminal, json }: Call,
  runId: string,
  commit: Pick<Commit, 'seq' | 'at' | 'events'>,
  begunAt: string,
): void {
  const { seq, at } = commit;
  if (json) {
    for (const event of commit.events) terminal.print(JSON.stringify({ runId, seq, at, ...event }));
    return;
  }
  for (const { event, last } of eventEntries(printable(commit.events))) {
    const text = eventText(event, at, last);
    const page = new Page(terminal);
    page.entry(`${clockNear(at, begunAt)}  `, page.short(text), eventTone(event));
  }
}
