import { gunzipSync } from 'node:zlib';
import { canonicalJson, sha256Hex } from '../run/canonical-json.ts';
import type { TenantPolicies } from './policy.ts';
import { InvalidPolicies } from './policy-engine.ts';
import type { ShippedPolicies } from './shipped-policies.ts';

/** A module of OPA's compiler has about 130 KB and grows with the policy. */
const WASM_MAX_BYTES = 4 * 1024 * 1024;

/** A whole policy set. The SHA-256 of its canonical form is the `policyHash` of its decisions. */
export type PolicySetText =
  | { engine: 'cedar'; schema: string; shipped: Record<string, string>; files: Record<string, string> }
  /** The SHA-256 of the module, which is a text of its own. */
  | { engine: 'rego'; wasm: string };

export const cedarSetText = ({ schema, files: shipped }: ShippedPolicies, files: Record<string, string>) =>
  ({ engine: 'cedar', schema, shipped, files }) satisfies PolicySetText;

export const regoSetText = (wasm: Uint8Array) => ({ engine: 'rego', wasm: sha256Hex(wasm) }) satisfies PolicySetText;

/** What is stored of a policy set, each under its SHA-256: the set, and the module of a compiled policy. */
export function policyTexts(policies: TenantPolicies, shipped: () => ShippedPolicies): Buffer[] {
  if (policies.engine === 'cedar') return [Buffer.from(canonicalJson(cedarSetText(shipped(), policies.files)))];
  const wasm = unzipModule(policies.wasmGzipBase64);
  return [wasm, Buffer.from(canonicalJson(regoSetText(wasm)))];
}

export function unzipModule(wasmGzipBase64: string): Buffer<ArrayBuffer> {
  try {
    return gunzipSync(Buffer.from(wasmGzipBase64, 'base64'), { maxOutputLength: WASM_MAX_BYTES });
  } catch (cause) {
    throw new InvalidPolicies([
      `the policy must be gzip in base64, at most ${WASM_MAX_BYTES} bytes unpacked: ${cause instanceof Error ? cause.message : cause}`,
    ]);
  }
}
