import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import * as z from 'zod';
import { PolicyCases, type TriedCase, tryCases } from '../../../lambdas/api/policies/policy-cases.ts';
import type { Policy } from '../../../lambdas/policy/policy.ts';
import { EXIT, Failure } from '../failure.ts';
import { fileFailure } from '../read-file.ts';

export interface TriedFileCase extends TriedCase {
  file: string;
}

/** Runs every case of a file, or of all files of a folder. */
export async function tryCaseFiles(path: string, policy: Policy): Promise<TriedFileCase[]> {
  const tried: TriedFileCase[] = [];
  for (const file of caseFiles(path)) {
    tried.push(...(await tryCases(readCases(file), policy)).map((each) => ({ file, ...each })));
  }
  return tried;
}

function caseFiles(path: string): string[] {
  try {
    if (!statSync(path).isDirectory()) return [path];
    const files = readdirSync(path).filter((name) => /\.ya?ml$/.test(name));
    if (files.length > 0) return files.sort().map((name) => join(path, name));
  } catch (cause) {
    throw fileFailure('read', path, cause);
  }
  throw new Failure(EXIT.usage, `${path} contains no cases (.yaml)`);
}

function readCases(file: string): z.infer<typeof PolicyCases> {
  let content: unknown;
  try {
    content = parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new Failure(EXIT.usage, `${file}: ${(cause as Error).message}`, { cause });
  }
  const cases = PolicyCases.safeParse(content);
  if (cases.success) return cases.data;
  throw new Failure(EXIT.usage, `${file} is not a list of cases:\n${z.prettifyError(cases.error)}`);
}
