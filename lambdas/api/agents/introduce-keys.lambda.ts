import { KMSClient } from '@aws-sdk/client-kms';
import { type Introductions, introduceKeys } from '../../agents/introduce-keys.ts';
import { readEnvironment } from '../../entry/environment.ts';
import { functionHandler } from '../../entry/middy-handler.ts';
import { isoNow } from '../../entry/ports.ts';
import { systemClock } from '../../entry/system.ts';
import { KeysEnvironment } from '../../evidence/environment.ts';
import { KmsPublicKeys, KmsSigner } from '../../evidence/signing/kms-signer.ts';
import { signingKeys } from './assignment-keys.ts';

const { EVIDENCE_KEYS } = readEnvironment(KeysEnvironment);
const kms = new KMSClient();
const ALGORITHM = { ed25519: 'ED25519_SHA_512', p256: 'ECDSA_SHA_256' } as const;

/**
 * Has no route, and takes no input: only the function that registers agents invokes it. So a function with a public route
 * cannot sign with retired keys, and this one signs nothing but introductions of the keys of the stage.
 */
export const handler = functionHandler<unknown, Introductions>().handler(async () =>
  introduceKeys(
    await signingKeys(EVIDENCE_KEYS, new KmsPublicKeys(kms)),
    ({ key_id, algorithm }) =>
      new KmsSigner(kms, { SIGNING_KEY_ARN: key_id, SIGNING_ALGORITHM: ALGORITHM[algorithm], EVIDENCE_KEYS }),
    isoNow(systemClock),
  ),
);
