import type { Signer } from '../evidence/evidence-store.ts';
import { preAuthEncoding } from '../evidence/signing/dsse.ts';
import { canonicalJson, sha256Hex } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import { ASSIGNMENT_PAYLOAD_TYPE } from './agent-terms.ts';
import type { AssignmentStatement } from './protocol.ts';

/** Signs with the evidence key, which agents pin when they are enrolled. */
export type AssignmentSigner = Pick<Signer, 'sign'>;

/** KMS signs at most this many bytes. */
const SIGNED_MAX_BYTES = 4_096;

/** A DSSE envelope. Its payload type differs from that of evidence, so no other signature can pass for an assignment. */
export async function signAssignment(
  signer: AssignmentSigner,
  statement: AssignmentStatement,
): Promise<{ envelope: unknown; statementHash: string }> {
  const payload = Buffer.from(canonicalJson(statement));
  const message = preAuthEncoding(ASSIGNMENT_PAYLOAD_TYPE, payload);
  if (message.length > SIGNED_MAX_BYTES) {
    throw new CountersignError(
      'INPUT_INVALID',
      `the command and its options are too long to be signed (${message.length} bytes, at most ${SIGNED_MAX_BYTES}); put long values into a file on the host`,
    );
  }
  return {
    envelope: await signedEnvelope(signer, ASSIGNMENT_PAYLOAD_TYPE, payload),
    statementHash: sha256Hex(payload.toString()),
  };
}

export async function signedEnvelope(signer: AssignmentSigner, payloadType: string, payload: Buffer): Promise<unknown> {
  const { keyId, signature } = await signer.sign(preAuthEncoding(payloadType, payload));
  return {
    payload: payload.toString('base64'),
    payloadType,
    signatures: [{ keyid: keyId, sig: signature.toString('base64') }],
  };
}
