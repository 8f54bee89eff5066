import { canonicalJson, hashOf } from '../run/canonical-json.ts';
import type { Commit } from '../run/commit.ts';
import type { Receipt } from '../run/receipt.ts';
import type { TerminalRun, Trigger } from '../run/run.ts';
import type { Step } from '../run/step.ts';
import type { Signer } from './evidence-store.ts';

export const BUNDLE_FORMAT = 'countersign.evidence/1';
const PAYLOAD_TYPE = 'application/vnd.in-toto+json';
const PREDICATE_TYPE = 'https://countersign.dev/evidence/v1';

export interface BundleContents {
  run: TerminalRun;
  trigger: Trigger;
  steps: Step[];
  commits: Commit[];
  receipts: Receipt[];
}

export interface Bundle {
  documentKey: string;
  document: Buffer;
  envelopeKey: string;
}

/** Same run, same bytes, same name: sealing twice gives the identical document. */
export function buildBundle(contents: BundleContents): Bundle {
  const document = Buffer.from(canonicalJson(JSON.parse(JSON.stringify(describe(contents)))));
  const { tenant, runId } = contents.run;
  return {
    document,
    documentKey: `evidence/${tenant}/${runId}/bundle.json`,
    envelopeKey: `evidence/${tenant}/${runId}/bundle.dsse.json`,
  };
}

/** Metadata only: what people and systems wrote appears as hashes and sizes, never as text. */
function describe({ run, trigger, steps, commits, receipts }: BundleContents) {
  const { enrichment: _personalText, ...facts } = run;
  return {
    format: BUNDLE_FORMAT,
    run: facts,
    trigger: {
      source: trigger.source,
      event: trigger.event,
      receivedAt: trigger.receivedAt,
      ...digest(trigger.payload),
    },
    steps: steps.map((step) => {
      const { id, index, tool, status, attempt, leaseVersion } = step;
      const output = step.status === 'succeeded' ? { output: digest(step.output) } : {};
      return { id, index, tool, status, attempt, leaseVersion, ...output };
    }),
    receipts: receipts.map((receipt) => {
      if (receipt.outcome !== 'succeeded') return receipt;
      const { output, before, reversal, ...rest } = receipt;
      return {
        ...rest,
        output: digest(output),
        ...(before !== undefined && { before: digest(before) }),
        reversal: 'tool' in reversal ? { tool: reversal.tool, input: digest(reversal.input) } : reversal,
      };
    }),
    commits,
    head: { hash: run.headHash, count: run.seq },
  };
}

function digest(value: unknown): { sha256: string; bytes: number } {
  const plain = JSON.parse(JSON.stringify(value ?? null));
  return { sha256: hashOf(plain), bytes: Buffer.byteLength(JSON.stringify(plain)) };
}

/** A DSSE envelope around a small in-toto statement: subject the run, digest the document's, predicate head and count. */
export async function signBundle(run: TerminalRun, sha256: string, signer: Signer): Promise<Buffer> {
  const statement = Buffer.from(
    canonicalJson({
      _type: 'https://in-toto.io/Statement/v1',
      subject: [{ name: `${run.tenant}/${run.runId}`, digest: { sha256 } }],
      predicateType: PREDICATE_TYPE,
      predicate: { head: run.headHash, count: run.seq, status: run.status },
    }),
  );
  const { keyId, signature } = await signer.sign(preAuthEncoding(PAYLOAD_TYPE, statement));
  return Buffer.from(
    JSON.stringify({
      payloadType: PAYLOAD_TYPE,
      payload: statement.toString('base64'),
      signatures: [{ keyid: keyId, sig: signature.toString('base64') }],
    }),
  );
}

/** DSSE signs type and body with their lengths, so that neither can be taken for the other. */
export function preAuthEncoding(type: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${body.length} `), body]);
}
