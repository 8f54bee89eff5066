import type { Command } from './command.ts';
import { EXIT } from './failure.ts';

export const redrive: Command = {
  name: 'redrive',
  takes: [],
  says: 'send messages that failed too often back to work',
  details:
    'Only messages of your tenant. Mend their cause first. A run that has moved on meanwhile is not disturbed by its message.',
  options: { 'dry-run': { says: 'only count them' } },
  async run(call) {
    const api = call.api();
    const queues = call.isSet('dry-run') ? (await api.deadLetters()).queues : (await api.redrive()).redriven;
    if (call.json) call.printJson({ queues });
    else {
      const done = call.isSet('dry-run') ? 'dead' : 'sent back';
      for (const { queue, messages, complete } of queues) {
        call.terminal.print(`${queue}: ${messages} ${done}${complete ? '' : '; there may be more, run it again'}`);
      }
    }
    return EXIT.ok;
  },
};
