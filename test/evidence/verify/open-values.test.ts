import { describe, expect, it } from 'vitest';
import { ExportDraft } from '../../../lambdas/evidence/export/export-run.ts';
import { type EvidenceValues, openValues } from '../../../lambdas/evidence/verify/open-values.ts';
import { rowsOf } from '../../fakes/whole-run.ts';
import { builtDocument } from '../bundle/built-bundle.ts';
import { GovernedStory, type StoryOptions, TEXT_CANARIES } from '../bundle/governed-story.ts';

function exportedRun(options: StoryOptions = {}) {
  const { contents } = new GovernedStory(options);
  const draft = new ExportDraft(['artifacts']);
  for (const row of rowsOf(contents)) draft.take(row);
  for (const receipt of contents.receipts) draft.takeReceipt(receipt);
  const { content = '' } = [...draft.artifacts(contents.run)].find(({ name }) => name === 'values') ?? {};
  const text = String(content);
  return { document: JSON.parse(String(builtDocument(contents))), text, values: JSON.parse(text) as EvidenceValues };
}

describe('the values of a run', () => {
  it('open every digest of its bundle', () => {
    const { document, values } = exportedRun();
    const { proven, different, missing } = openValues(document, values);
    expect(different).toEqual([]);
    expect(missing).toEqual([]);
    const paths = proven.map(({ path }) => path);
    expect(paths).toContain('trigger.payload');
    expect(paths.some((path) => /^receipts\[.*\]\.before$/.test(path))).toBe(true);
    expect(paths.some((path) => /^receipts\[.*\]\.reversal\.input$/.test(path))).toBe(true);
    expect(paths.some((path) => /^approvals\[.*\]\.votes\[0\]\.reason$/.test(path))).toBe(true);
    expect(paths.some((path) => /^steps\[\d+\]\.action\.fields\./.test(path))).toBe(true);
    expect(paths.some((path) => /^receipts\[.*\]\.requestHash$/.test(path))).toBe(true);
  });

  it('have the texts that evidence shows only as digests, and the request of each decision', () => {
    const { text, values } = exportedRun();
    for (const canary of TEXT_CANARIES) expect(text, canary).toContain(canary);
    const steps = values.steps as { request?: unknown; action?: unknown; decision?: unknown }[];
    expect(steps.filter(({ request, action, decision }) => request && action && decision).length).toBeGreaterThan(0);
  });

  it('of which one was changed are not those of the bundle', () => {
    const { document, text } = exportedRun();
    for (const canary of TEXT_CANARIES) {
      const { different } = openValues(document, JSON.parse(text.replace(canary, 'another text')));
      // The title is part of no digest of the bundle; its hash is in an event.
      if (canary !== 'CANARY-title') expect(different.length, canary).toBeGreaterThan(0);
    }
  });

  it('may be incomplete: what is missing is named', () => {
    const { document, values } = exportedRun();
    const { receipts: _deleted, ...rest } = values;
    const { missing, different } = openValues(document, rest as EvidenceValues);
    expect(different).toEqual([]);
    expect(missing.length).toBeGreaterThan(0);
    expect(missing.every((path) => path.startsWith('receipts['))).toBe(true);
  });
});
