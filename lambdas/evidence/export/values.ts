import type { Approval } from '../../run/approval.ts';
import { canonicalJson } from '../../run/canonical-json.ts';
import type { Commit } from '../../run/commit.ts';
import type { Receipt } from '../../run/receipt.ts';
import type { TerminalRun, Trigger } from '../../run/run.ts';
import type { Step } from '../../run/step.ts';

/**
 * The values behind the digests of a bundle, in the same sections and under the same names, so that each can be compared with
 * its digest (`openValues`). Unlike evidence they are encrypted under a key of their own, and can be deleted.
 */
export const VALUES_FORMAT = 'countersign.evidence-values/1';

const bytesOf = (value: object): Buffer => Buffer.from(canonicalJson(value));

/** Also the request to policy, so that its decision can be made again. */
export function stepValues(step: Step): Buffer {
  const { id, index, governed } = step;
  const { action, ...request } = governed?.request ?? {};
  return bytesOf({
    id,
    index,
    input: 'input' in step ? step.input : undefined,
    output: 'output' in step ? step.output : undefined,
    error: 'error' in step ? { message: step.error.message } : undefined,
    ...(governed && { action, request, decision: governed.decision }),
  });
}

export function approvalValues({ approvalId, message, before, after, action, phase, votes, edits }: Approval): Buffer {
  return bytesOf({
    approvalId,
    message,
    before,
    after,
    action,
    phase: phase && {
      writes: phase.writes.map((write) => ({ action: write.action, before: write.before, after: write.after })),
    },
    votes: votes.map(({ reason }) => ({ reason })),
    edits: edits.map(({ changes }) => ({ changes: changes.map(({ from, to }) => ({ from, to })) })),
  });
}

export function receiptValues(receipt: Receipt): Buffer {
  const { key, outcome } = receipt;
  const isMade = outcome === 'succeeded' || outcome === 'reversed';
  return bytesOf({
    key,
    reversal: 'reversal' in receipt ? receipt.reversal : undefined,
    error: 'error' in receipt && receipt.error ? { message: receipt.error.message } : undefined,
    ...(isMade && { before: receipt.before, output: receipt.output, incomplete: receipt.incomplete }),
  });
}

/** With the sentences that the hash of the commit has as digests. */
export const commitValues = ({ seq, events }: Commit): Buffer => bytesOf({ seq, events });

export const triggerValues = ({ payload }: Trigger): Buffer => bytesOf({ payload });

/** Parts as bytes, because together they may be large as objects. */
export interface ValueParts {
  trigger: Buffer | undefined;
  steps: readonly Buffer[];
  approvals: readonly Buffer[];
  receipts: readonly Buffer[];
  commits: readonly Buffer[];
}

export function valuesDocument(run: TerminalRun, { trigger, ...lists }: ValueParts): Buffer {
  const { tenant, runId, error, concurrencyKey, inputs, enrichment, salt } = run;
  const head = canonicalJson({
    format: VALUES_FORMAT,
    tenant,
    runId,
    run: {
      concurrencyKey,
      salt,
      inputs,
      enrichment,
      error: error && { message: error.message },
      compensation: run.compensation?.map(({ reason }) => ({ reason })),
      rollback: run.rollback?.error && { error: { message: run.rollback.error.message } },
    },
  });
  const parts: Buffer[] = [Buffer.from(head.slice(0, -1))];
  if (trigger) parts.push(Buffer.from(',"trigger":'), trigger);
  for (const [name, list] of Object.entries(lists)) {
    parts.push(Buffer.from(`,"${name}":[`));
    for (const [index, part] of list.entries()) parts.push(...(index === 0 ? [part] : [Buffer.from(','), part]));
    parts.push(Buffer.from(']'));
  }
  return Buffer.concat([...parts, Buffer.from('}')]);
}
