import * as z from 'zod';
import { tryParseJsonFile } from '../../entry/parse-json.ts';
import { canonicalJson } from '../../run/canonical-json.ts';
import { type Claim, Envelope, Statement } from '../signing/dsse.ts';

export interface OpenedEnvelope {
  statement: Statement;
  keyId: string;
  payload: Buffer;
  signature: Buffer;
}

/** Parses an envelope of `signClaim`. Throws if its bytes differ from that form in any way. */
export function openEnvelope(bytes: Buffer): OpenedEnvelope {
  const envelope = parsed(Envelope, bytes);
  const [{ keyid, sig }] = envelope.signatures;
  const payload = Buffer.from(envelope.payload, 'base64');
  const statement = parsed(Statement, payload);
  if (statement.predicate.keyId !== keyid) throw new Error('its key id differs from that of the statement');
  return { statement, keyId: keyid, payload, signature: Buffer.from(sig, 'base64') };
}

function parsed<T>(schema: z.ZodType<T>, bytes: Buffer): T {
  const json = tryParseJsonFile(bytes);
  if (json === undefined) throw new Error('it is not JSON');
  const { success, data, error } = schema.safeParse(json);
  if (!success) throw new Error(z.prettifyError(error));
  if (!bytes.equals(Buffer.from(canonicalJson(data)))) throw new Error('it is not in canonical form (RFC 8785)');
  return data;
}

/** The signed facts of an envelope. */
export function claimOf({ statement }: OpenedEnvelope): Claim {
  const [{ name, digest }] = statement.subject;
  const { keyId: _, ...predicate } = statement.predicate;
  return { subject: name, ...digest, predicateType: statement.predicateType, predicate };
}
