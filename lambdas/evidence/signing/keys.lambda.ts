import { KMSClient } from '@aws-sdk/client-kms';
import { evidenceKeyRoutes } from '../../api/contract/evidence.ts';
import { router } from '../../api/router.ts';
import { Cached } from '../../entry/cached.ts';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { systemClock } from '../../entry/system.ts';
import { KeysEnvironment } from '../environment.ts';
import type { PublishedKey } from '../verify/trusted-keys.ts';
import { KmsPublicKeys } from './kms-signer.ts';
import { publishedKeys } from './published-keys.ts';

/** Keys change only with deployments, which start new functions. The cache saves KMS requests. */
const CACHED_MS = 60 * 60 * 1000;

const { EVIDENCE_KEYS } = readEnvironment(KeysEnvironment);
const kms = new KmsPublicKeys(new KMSClient());
const cache = new Cached<{ keys: PublishedKey[] }>(CACHED_MS, systemClock.now);

const handleKeys = router<undefined, typeof evidenceKeyRoutes>(evidenceKeyRoutes, {
  listEvidenceKeys: async () => ({
    status: 200,
    body: await cache.get('all', () => publishedKeys(EVIDENCE_KEYS, kms)),
    headers: { 'cache-control': 'public, max-age=3600' },
  }),
});

export const handler = httpHandler((event) => handleKeys(undefined, event));
