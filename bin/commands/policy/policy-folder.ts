import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { NO_TENANT_POLICIES, type TenantPolicies } from '../../../lambdas/policy/policy.ts';
import { EXIT, Failure } from '../failure.ts';
import { fileFailure } from '../read-file.ts';

export const POLICIES_OPTION = {
  policies: {
    value: 'FOLDER',
    description: "the tenant's policies: .cedar files, or one .wasm compiled from Rego",
  },
};

/** Without a folder, only the shipped policies apply. */
export function readPolicyFolder(folder: string | undefined): TenantPolicies {
  if (folder === undefined) return NO_TENANT_POLICIES;
  const names = namesIn(folder);
  const cedar = names.filter((name) => name.endsWith('.cedar'));
  const [wasm, ...others] = names.filter((name) => name.endsWith('.wasm'));
  if (wasm !== undefined) {
    if (cedar.length + others.length > 0) throw unusable(folder, 'must contain either one .wasm file or .cedar files');
    return { engine: 'rego', wasmGzipBase64: gzipSync(readFileSync(join(folder, wasm))).toString('base64') };
  }
  if (cedar.length === 0) throw unusable(folder, 'contains no .cedar or .wasm file');
  return {
    engine: 'cedar',
    files: Object.fromEntries(cedar.map((name) => [name, readFileSync(join(folder, name), 'utf8')])),
  };
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (cause) {
    throw fileFailure('read', folder, cause);
  }
}

const unusable = (folder: string, why: string) => new Failure(EXIT.usage, `${folder} ${why}`);
