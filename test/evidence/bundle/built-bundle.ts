import { BundleDraft } from '../../../lambdas/evidence/bundle/bundle-draft.ts';
import type { Receipt } from '../../../lambdas/run/receipt.ts';
import type { TerminalRun } from '../../../lambdas/run/run.ts';
import { rowsOf, type WholeRun } from '../../fakes/whole-run.ts';

export interface BundleContents extends WholeRun {
  run: TerminalRun;
  receipts: Receipt[];
}

/** The document of a run, made from its rows. */
export function builtDocument(contents: BundleContents): Buffer {
  const draft = new BundleDraft();
  for (const row of rowsOf(contents)) draft.take(row);
  for (const receipt of contents.receipts) draft.takeReceipt(receipt);
  return draft.build(contents.run);
}
