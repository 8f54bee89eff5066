import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type DecidedAgain, decideAgain } from '../../../lambdas/policy/decide-again.ts';
import type { PreparedPolicies } from '../../../lambdas/policy/policy-engine.ts';
import { counted } from '../../terminal/counted.ts';
import type { Call } from '../command.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import { readFile } from '../read-file.ts';
import { unreadable } from './bundle-file.ts';
import { valuesFile } from './bundle-names.ts';
import { readValues } from './open.ts';

/** Makes the decisions of a bundle again, with the policies in a folder and the requests in its values. */
export async function decisionsAgain(call: Call, bundle: Buffer, folder: string): Promise<DecidedAgain> {
  // Loaded here: the policy engines are large.
  const { prepareStored } = await import('../../../lambdas/policy/stored-policies.ts');
  const document = JSON.parse(bundle.toString());
  const values = readValues(valuesFile(call.arg(0)), document.run);
  const textOf = (hash: string) => {
    const file = join(folder, hash);
    return /^[0-9a-f]{64}$/.test(hash) && existsSync(file) ? readFile(file) : undefined;
  };
  const prepared = new Map<string, Promise<PreparedPolicies | undefined>>();
  const policiesOf = (hash: string) => {
    const policies = prepared.get(hash) ?? prepareStored(hash, textOf);
    prepared.set(hash, policies);
    return policies.catch((error: unknown) => {
      throw unreadable(`${join(folder, hash)}: ${error instanceof Error ? error.message : error}`);
    });
  };
  return decideAgain(document, values, policiesOf);
}

export function exitOf({ different, notCheckable }: DecidedAgain): ExitCode {
  if (different.length > 0) return EXIT.failed;
  return notCheckable.length > 0 ? EXIT.usage : EXIT.ok;
}

export function printDecisions({ same, different, notCheckable }: DecidedAgain, { terminal }: Call): void {
  const { print, paint } = terminal;
  const result =
    different.length > 0
      ? paint('bad', `${counted(different.length, 'decision')} different`)
      : paint('good', `${counted(same.length, 'decision')} made again, with the same result`);
  print(`  policies  ${result}`);
  for (const { step, problem } of different) print(`    ${step}: ${problem}`);
  for (const { step, reason } of notCheckable) print(`    ${step}: not checkable: ${reason}`);
}
