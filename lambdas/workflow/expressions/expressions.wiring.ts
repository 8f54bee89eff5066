import { systemClock, systemStopwatch } from '../../entry/system.ts';
import { ExpressionPool } from './expression-pool.ts';
import { ExpressionProcess } from './expression-process.ts';
import type { Expressions } from './expressions.ts';

/** Where Lambda's own Node finds its libraries. Nothing else of the environment is any business of an expression. */
function environment(): Record<string, string> {
  const { LD_LIBRARY_PATH } = process.env;
  return LD_LIBRARY_PATH === undefined ? {} : { LD_LIBRARY_PATH };
}

/** Made once per function instance; it starts a process at the first expression that needs one. */
export const wireExpressions = (): Expressions & { stop(): void } =>
  new ExpressionPool({ start: () => new ExpressionProcess(systemStopwatch, environment()), now: systemClock.now });
