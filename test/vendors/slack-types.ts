import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const WEB_API = resolve('node_modules/@slack/web-api/dist/index.d.ts');
const TYPES = resolve('node_modules/@slack/types/dist/index.d.ts');

/** A value, and its type in Slack's packages. */
export interface Claim {
  /** `WebApi.ChatUpdateArguments`, `Types.KnownBlock[]`. */
  type: string;
  value: unknown;
}

/**
 * The compiler errors for these values, written as literals: a field of another type, a missing field, and
 * an unknown field. Empty if the values match Slack's published types.
 */
export async function typeErrors(claims: readonly Claim[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'slack-types-'));
  const file = join(folder, 'claims.ts');
  const lines = claims.map(({ type, value }, index) => `export const c${index}: ${type} = ${JSON.stringify(value)};`);
  const imports = [
    `import type * as WebApi from ${JSON.stringify(WEB_API)};`,
    `import type * as Types from ${JSON.stringify(TYPES)};`,
  ];
  writeFileSync(
    file,
    [...imports, ...lines, 'export type Used = [WebApi.ChatUpdateArguments, Types.Button];'].join('\n'),
  );
  const flags = [
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    '--ignoreConfig',
    '--target',
    'es2022',
    '--module',
    'nodenext',
    '--types',
    'node',
  ];
  const typeRoots = ['--typeRoots', resolve('node_modules/@types')];
  try {
    await promisify(execFile)(process.execPath, [
      resolve('node_modules/typescript/bin/tsc'),
      ...flags,
      ...typeRoots,
      file,
    ]);
    return '';
  } catch (error) {
    return String((error as { stdout?: string }).stdout || error);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
