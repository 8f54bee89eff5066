import type { StuckEntry } from '../client/api-client.ts';
import { counted } from '../terminal/counted.ts';
import { printable } from '../terminal/terminal.ts';
import type { Command } from './command.ts';
import { printCounts } from './dead-letters.ts';
import { EXIT } from './failure.ts';

export const redrive: Command = {
  name: 'redrive',
  args: [],
  description: 'return all dead letters to their queues',
  details: 'Only messages of your tenant. Fix the cause first. A run that has continued ignores its old messages.',
  options: { 'dry-run': { description: 'only count the messages' } },
  async run(call) {
    const api = call.api();
    const dryRun = call.isSet('dry-run');
    const queues = dryRun
      ? (await api.call('GET /api/v1/dead-letters')).queues
      : (await api.call('POST /api/v1/dead-letters/redrive')).redriven;
    if (call.json) call.printJson({ queues });
    else printCounts(call, queues, dryRun ? 'in the dead-letter queue' : 'returned');
    return EXIT.ok;
  },
};

export const outboxRedrive: Command = {
  name: 'outbox redrive',
  args: [],
  description: 'resend outbox entries that failed or were sent too often',
  details: 'Fix the cause first. The next sweep resends them within a minute. Sending an entry twice is harmless.',
  options: { 'dry-run': { description: 'only list the entries' } },
  async run(call) {
    const api = call.api();
    const dryRun = call.isSet('dry-run');
    const entries: StuckEntry[] = [];
    let more = true;
    while (more) {
      const page = await api.call('POST /api/v1/outbox/redrive', { body: { dryRun } });
      entries.push(...page.entries);
      // Resent entries are no longer stuck, so the same request returns the next page. After a dry run it would not.
      more = page.more && !dryRun;
      if (page.more && dryRun) call.terminal.note('there are more entries; these are the first');
    }
    if (call.json) call.printJson({ entries });
    else {
      const oldestFirst = entries.toSorted((a, b) => ((a.createdAt ?? '') < (b.createdAt ?? '') ? -1 : 1));
      for (const { id, attempts, failed } of printable(oldestFirst)) {
        call.terminal.print(`${id}: ${failed ? `failed, ${failed.reason}` : `sent ${counted(attempts, 'time')}`}`);
      }
      call.terminal.print(`${entries.length} ${dryRun ? 'stuck' : 'will be resent within a minute'}`);
      if (dryRun && entries.length > 0) call.terminal.note('send them again: npx countersign outbox redrive');
    }
    return EXIT.ok;
  },
};
