import { sha256Hex } from '../run/canonical-json.ts';
import { CedarPolicies } from './cedar-policies.ts';
import { CedarRuntime, loadCedar } from './cedar-runtime.ts';
import { OpaPolicies } from './opa-policies.ts';
import type { PreparedPolicies } from './policy-engine.ts';
import type { PolicySetText } from './policy-texts.ts';

/** Returns the stored text with this hash. */
export type StoredText = (hash: string) => Buffer | undefined;

/** Prepares a policy set from its stored text, with the shipped policies of that time. Throws if it is not that set. */
export async function prepareStored(hash: string, textOf: StoredText): Promise<PreparedPolicies | undefined> {
  const text = checkedText(hash, textOf);
  if (!text) return undefined;
  const set: PolicySetText = JSON.parse(text.toString());
  if (set.engine === 'rego') {
    const wasm = checkedText(set.wasm, textOf);
    return wasm && new OpaPolicies().prepareModule(Buffer.from(wasm));
  }
  const shipped = { schema: set.schema, files: set.shipped };
  const cedar = new CedarPolicies(new CedarRuntime(loadCedar, () => set.schema), () => shipped);
  return cedar.prepare({ engine: 'cedar', files: set.files });
}

function checkedText(hash: string, textOf: StoredText): Buffer | undefined {
  const text = textOf(hash);
  if (text && sha256Hex(text) !== hash) throw new Error(`the text ${hash} was changed: it has another hash`);
  return text;
}
