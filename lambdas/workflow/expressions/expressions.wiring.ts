import { systemClock, systemStopwatch } from '../../entry/system.ts';
import { ExpressionPool } from './expression-pool.ts';
import { ExpressionProcess } from './expression-process.ts';
import type { Expressions } from './expressions.ts';

/** Lambda's Node needs LD_LIBRARY_PATH. Expressions get no other environment variable. */
function environment(): Record<string, string> {
  const { LD_LIBRARY_PATH } = process.env;
  return LD_LIBRARY_PATH === undefined ? {} : { LD_LIBRARY_PATH };
}

/** Once per function instance. A process is started for the first expression that needs one. */
export const wireExpressions = (): Expressions & { stop(): void } =>
  new ExpressionPool({ start: () => new ExpressionProcess(systemStopwatch, environment()), now: systemClock.now });
