import { beforeEach, expect, it } from 'vitest';
import { textKey } from '../../lambdas/evidence/named-texts.ts';
import { TextArchive } from '../../lambdas/pipeline/text-archive.ts';
import { cedarSetText } from '../../lambdas/policy/policy-texts.ts';
import { readShippedPolicies } from '../../lambdas/policy/shipped-policies.ts';
import { hashOf } from '../../lambdas/run/canonical-json.ts';
import { byTest } from '../fakes/by-test.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';
import { MemoryEvidenceStore } from '../fakes/memory/memory-evidence-store.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';

const RUN = { tenant: 'acme', workflow: { name: 'none', version: 1 } };
const OWN = { 'own.cedar': 'forbid (principal, action, resource);' };
let shipped = readShippedPolicies();
let definitions: MemoryDefinitions;
let store: MemoryEvidenceStore;
let reads: number;
const log = new MemoryLog();

const archive = () =>
  new TextArchive({
    store,
    definitions: {
      policies: (tenant) => {
        reads += 1;
        return definitions.policies(tenant);
      },
      workflow: definitions.workflow.bind(definitions),
    },
    shipped: () => shipped,
    log,
  });

beforeEach(() => {
  shipped = readShippedPolicies();
  definitions = new MemoryDefinitions();
  store = new MemoryEvidenceStore();
  reads = 0;
});

const named = (...policies: string[]) => ({ policies, workflow: undefined });

it('stores the policies of a sealed run once, and reads nothing for the next run', async () => {
  const hash = hashOf(cedarSetText(shipped, {}));
  const texts = archive();
  await texts.keepTextsOf(RUN, named(hash));
  await texts.keepTextsOf(RUN, named(hash));
  expect([store.keys(), reads]).toEqual([[textKey('acme', hash)], 1]);
});

it('stores the set of an upgrade when the first run after it is sealed', async () => {
  await definitions.savePolicies('acme', { engine: 'cedar', files: OWN }, byTest());
  const before = hashOf(cedarSetText(shipped, OWN));
  await archive().keepTextsOf(RUN, named(before));
  shipped = { ...shipped, files: { 'default.cedar': `${shipped.files['default.cedar']}\n// changed` } };
  const after = hashOf(cedarSetText(shipped, OWN));
  await archive().keepTextsOf(RUN, named(after));
  expect(store.keys()).toEqual([textKey('acme', before), textKey('acme', after)]);
});

it('policies that are invalid do not prevent sealing', async () => {
  await definitions.savePolicies('acme', { engine: 'rego', wasmGzipBase64: 'AAAA' }, byTest());
  await archive().keepTextsOf(RUN, named('a'.repeat(64)));
  expect(store.keys()).toEqual([]);
  expect(log.messages('warn')).toHaveLength(1);
});
