import { KMSClient } from '@aws-sdk/client-kms';
import { Cached } from '../../entry/cached.ts';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler, json } from '../../entry/http.ts';
import { systemClock } from '../../entry/system.ts';
import { KeysEnvironment } from '../environment.ts';
import type { PublishedKey } from '../verify/trusted-keys.ts';
import { KmsPublicKeys } from './kms-signer.ts';
import { publishedKeys } from './published-keys.ts';

/** Keys come and go with deployments, which start new functions; this only spares KMS. */
const CACHED_MS = 60 * 60 * 1000;

const { EVIDENCE_KEYS } = readEnvironment(KeysEnvironment);
const held = new KmsPublicKeys(new KMSClient());
const kept = new Cached<{ keys: PublishedKey[] }>(CACHED_MS, systemClock.now);

export const handler = httpHandler(async () => {
  const answer = json(200, await kept.get('all', () => publishedKeys(EVIDENCE_KEYS, held)));
  return { ...answer, headers: { ...answer.headers, 'cache-control': 'public, max-age=3600' } };
});
