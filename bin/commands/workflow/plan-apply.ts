import type { Command } from '../command.ts';
import { printStarted } from '../runs/start.ts';

export const planApply: Command = {
  name: 'plan apply',
  args: ['HASH'],
  description: 'start a run that writes only what the plan showed',
  details: 'HASH is the planHash of workflow simulate --save. If something changed since, nothing is started.',
  options: {},
  async run(call) {
    const params = { hash: call.arg(0) };
    return printStarted(call, await call.api().call('POST /api/v1/plans/{hash}/apply', { params }));
  },
};
