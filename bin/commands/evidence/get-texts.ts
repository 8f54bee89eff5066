import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { tryParseJsonBytes } from '../../../lambdas/entry/parse-json.ts';
import { isTextHash, textsNamedIn } from '../../../lambdas/evidence/named-texts.ts';
import type { Api } from '../../client/api-client.ts';
import { EXIT, Failure } from '../failure.ts';
import { fileFailure, writeFile } from '../read-file.ts';

/** Downloads the policy sets and the workflow version of a bundle. Runs of earlier releases name texts that were not stored. */
export async function getTexts(
  api: Api,
  document: Uint8Array,
  folder: string,
): Promise<{ files: string[]; missing: string[] }> {
  const { policies, workflow } = textsNamedIn(JSON.parse(Buffer.from(document).toString()).commits);
  const written = { files: [] as string[], missing: [] as string[] };
  const wanted = [...policies, ...(workflow === undefined ? [] : [workflow])];
  if (wanted.length > 0) makeFolder(folder);
  for (const hash of wanted) {
    const text = await textOf(api, hash);
    if (!text) {
      written.missing.push(hash);
      continue;
    }
    const file = join(folder, hash);
    writeFile(file, text);
    written.files.push(file);
    // The set of a compiled policy names its module.
    const { wasm } = Object(policies.includes(hash) ? tryParseJsonBytes(Buffer.from(text)) : undefined);
    if (isTextHash(wasm) && !wanted.includes(wasm)) wanted.push(wasm);
  }
  return written;
}

async function textOf(api: Api, hash: string): Promise<Uint8Array | undefined> {
  try {
    return await api.download('GET /api/v1/texts/{hash}', { params: { hash } });
  } catch (error) {
    if (error instanceof Failure && error.exitCode === EXIT.failed && error.message.includes(hash)) return undefined;
    throw error;
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (cause) {
    throw fileFailure('write', folder, cause);
  }
}
