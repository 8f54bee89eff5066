import * as z from 'zod';
import { tryParseJsonBytes } from '../../entry/parse-json.ts';
import { canonicalJson } from '../../run/canonical-json.ts';
import { leafHash, rootOfPath } from '../daily-log/merkle.ts';
import {
  BATCH_PREDICATE_TYPE,
  BATCH_SUBJECT,
  BatchPredicate,
  type Claim,
  Envelope,
  Statement,
} from '../signing/dsse.ts';

export interface OpenedEnvelope {
  statement: Statement;
  keyId: string;
  /** What the signature is over: the statement, or that of the batch which contains it. */
  signed: Buffer;
  signature: Buffer;
}

/** Parses an envelope of `signClaims`. Throws if its bytes differ from that form in any way. */
export function openEnvelope(bytes: Buffer): OpenedEnvelope {
  const envelope = parsed(Envelope, bytes);
  const [{ keyid, sig }] = envelope.signatures;
  const payload = Buffer.from(envelope.payload, 'base64');
  const statement = parsed(Statement, payload);
  if (statement.predicate.keyId !== keyid) throw new Error('its key id differs from that of the statement');
  const signed = envelope.batch ? openBatch(envelope.batch, payload, keyid) : payload;
  return { statement, keyId: keyid, signed, signature: Buffer.from(sig, 'base64') };
}

/** Returns the signed statement of a batch that contains the payload. */
function openBatch(batch: NonNullable<z.infer<typeof Envelope>['batch']>, payload: Buffer, keyId: string): Buffer {
  const signed = Buffer.from(batch.payload, 'base64');
  const { predicateType, predicate, subject } = parsed(Statement, signed);
  const { data } = BatchPredicate.safeParse(predicate);
  if (!data || predicateType !== BATCH_PREDICATE_TYPE || subject[0].name !== BATCH_SUBJECT)
    throw new Error('its signed statement is not that of a batch');
  if (data.keyId !== keyId) throw new Error('its key id differs from that of the batch');
  const path = batch.path.map((sibling) => Buffer.from(sibling, 'hex'));
  const root = rootOfPath(leafHash(payload), { index: batch.index, size: data.size, path });
  if (root?.toString('hex') !== subject[0].digest.sha256) throw new Error('the signed batch does not contain it');
  return signed;
}

function parsed<T>(schema: z.ZodType<T>, bytes: Buffer): T {
  const json = tryParseJsonBytes(bytes);
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
