import type { FunctionStats } from '../local/lambda/functions.ts';
import type { ResolvedStack } from '../local/template/template.ts';

/** CloudWatch bills this many bytes for each line besides its text. */
const LINE_OVERHEAD_BYTES = 26;
/** Lambda's `platform.start` and `platform.report` of an invocation, which the local host does not write; lengths of AWS's examples. */
const PLATFORM_LINES_BYTES = 2 * LINE_OVERHEAD_BYTES + 210 + 330;

/** Counts what CloudWatch would bill for the log. */
export class LogBytes {
  #bytes: Record<string, number> = {};

  line(functionLogicalId: string, line: string): void {
    this.#bytes[functionLogicalId] =
      (this.#bytes[functionLogicalId] ?? 0) + Buffer.byteLength(line) + LINE_OVERHEAD_BYTES;
  }

  reset(): void {
    this.#bytes = {};
  }

  /** Of the functions that take part in runs. `platform`: with the log level of Lambda in the template. */
  of(
    counts: (functionLogicalId: string) => boolean,
    invoked: Readonly<Record<string, FunctionStats>>,
    stack: ResolvedStack,
  ): { application: number; platform: number } {
    const ours = Object.entries(this.#bytes).filter(([name]) => counts(name));
    const ofRuns = Object.fromEntries(Object.entries(invoked).filter(([name]) => counts(name)));
    return {
      application: ours.reduce((sum, [, bytes]) => sum + bytes, 0),
      platform: platformLogBytes(ofRuns, stack),
    };
  }
}

/** What Lambda itself logs about these invocations: nothing at the level WARN, which the template sets. */
export function platformLogBytes(invoked: Readonly<Record<string, FunctionStats>>, stack: ResolvedStack): number {
  const logged = stack.ofType('AWS::Lambda::Function').filter(({ properties }) => {
    const { SystemLogLevel = 'INFO' } = (properties.LoggingConfig ?? {}) as { SystemLogLevel?: string };
    return SystemLogLevel !== 'WARN';
  });
  const invocations = logged.reduce((sum, { logicalId }) => sum + (invoked[logicalId]?.invocations ?? 0), 0);
  return invocations * PLATFORM_LINES_BYTES;
}
