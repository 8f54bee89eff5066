import type { StuckEntry } from '../client/api-client.ts';
import { printable } from '../terminal/terminal.ts';
import type { Command } from './command.ts';
import { EXIT } from './failure.ts';

export const outboxRedrive: Command = {
  name: 'outbox redrive',
  takes: [],
  says: 'send outbox entries again that failed or were sent too often',
  details: 'Fix their cause first. The next sweep sends them, within a minute; sending one twice is harmless.',
  options: { 'dry-run': { says: 'only list them' } },
  async run(call) {
    const api = call.api();
    const dryRun = call.isSet('dry-run');
    const entries: StuckEntry[] = [];
    // What was sent again is no longer stuck: asking again gives the next page. A dry run changes nothing, so it has one.
    let more = true;
    while (more) {
      const page = await api.redriveOutbox({ dryRun });
      entries.push(...page.entries);
      more = page.more && !dryRun;
      if (page.more && dryRun) call.terminal.note('there are more; these are the first');
    }
    if (call.json) call.printJson({ entries });
    else {
      for (const { id, attempts, failed } of printable(entries)) {
        call.terminal.print(`${id}: ${failed ? `failed, ${failed.reason}` : `sent ${attempts} times`}`);
      }
      call.terminal.print(`${entries.length} ${dryRun ? 'stuck' : 'will be sent again'}`);
    }
    return EXIT.ok;
  },
};
