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
    const applied = await call.api().create('POST /api/v1/plans/{hash}/apply', { params });
    return printStarted(call, applied, 'the plan was applied before');
  },
};
