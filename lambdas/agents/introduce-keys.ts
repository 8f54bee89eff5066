import { createHash } from 'node:crypto';
import type * as z from 'zod';
import { canonicalJson } from '../run/canonical-json.ts';
import { AGENT_PROTOCOL_VERSION } from './agent-terms.ts';
import {
  KEY_INTRODUCTION_PAYLOAD_TYPE,
  type KeyIntroduction,
  type RegisterResponse,
  type SigningKey,
} from './protocol.ts';
import { type AssignmentSigner, signedEnvelope } from './sign-assignment.ts';

export type Introductions = z.infer<typeof RegisterResponse>['new_signing_keys'];

/**
 * Each key introduces the one that replaced it, so an agent that was enrolled with any of them can follow to the last one.
 * The payload type is that of introductions only: a retired key signs nothing else.
 */
export function introduceKeys(
  keys: readonly SigningKey[],
  signerOf: (key: SigningKey) => AssignmentSigner,
  at: string,
): Promise<Introductions> {
  return Promise.all(
    keys.slice(1).map(async (key, index) => {
      const former = keys[index] as SigningKey;
      const introduction: z.infer<typeof KeyIntroduction> = {
        version: AGENT_PROTOCOL_VERSION,
        key,
        replaces: createHash('sha256').update(Buffer.from(former.public_key, 'base64')).digest('hex'),
        issued_at: at,
      };
      const payload = Buffer.from(canonicalJson(introduction));
      return { envelope: await signedEnvelope(signerOf(former), KEY_INTRODUCTION_PAYLOAD_TYPE, payload) };
    }),
  );
}
