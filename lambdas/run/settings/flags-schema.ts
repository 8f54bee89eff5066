import * as z from 'zod';
import { FLAGS, type FlagName } from './flags.ts';

const flag = (name: FlagName) =>
  z
    .boolean()
    .optional()
    .describe(`Default ${FLAGS[name].byDefault ? 'on' : 'off'}. Off: ${FLAGS[name].whenOff}.`);

export const Flags = z.strictObject({
  'worker_orchestration.enabled': flag('worker_orchestration.enabled'),
  'writes.enabled': flag('writes.enabled'),
  'ui.task_workspace.enabled': flag('ui.task_workspace.enabled'),
} satisfies Record<FlagName, z.ZodType>);

/** The variable of functions with the flags that the stage sets. */
export const StageFlags = z
  .string()
  .transform((text) => JSON.parse(text) as unknown)
  .pipe(Flags);
