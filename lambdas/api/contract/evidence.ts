import * as z from 'zod';
import { route } from './route.ts';
import { FileBytes, runParams, Timestamp } from './schemas.ts';

const Artifact = z.object({
  name: z.enum(['enrichment', 'completion', 'values']),
  key: z.string().meta({ description: 'Of the object in the bucket of exports' }),
  offset: z.int().optional().meta({ description: 'Where it begins in this object; absent if it is the whole object' }),
  sha256: z.string(),
  sizeBytes: z.int(),
});

/** What a run shows of its sealed evidence. */
export const EvidenceRecord = z.object({
  documentKey: z.string(),
  envelopeKey: z.string(),
  within: z
    .object({ document: z.int(), envelope: z.int(), envelopeBytes: z.int() })
    .optional()
    .meta({ description: 'Where both begin in an object with bundles of several runs, and the size of the envelope' }),
  sha256: z.string(),
  sizeBytes: z.int().meta({ description: 'Of the document' }),
  sealedAt: Timestamp,
  artifacts: z.array(Artifact).optional().meta({
    description: 'The stored artifacts with the values of the run; one that could not be stored follows later',
  }),
});
EvidenceRecord.register(z.globalRegistry, { id: 'EvidenceRecord' });

export const evidenceRoutes = {
  getEvidence: route({
    method: 'GET',
    path: '/api/v1/runs/{id}/evidence',
    right: 'evidence:read',
    summary: 'Returns size, hash and location of the evidence of a run and of its addenda',
    params: runParams,
    query: z.strictObject({
      since: z.coerce.number().int().min(0).default(0).meta({ description: 'Only addenda after this commit' }),
    }),
    responses: {
      200: z.object({
        runId: z.string(),
        sha256: z.string(),
        sizeBytes: z.int(),
        sealedAt: Timestamp,
        document: z.string(),
        envelope: z.string(),
        artifacts: z
          .array(Artifact.extend({ document: z.string() }))
          .meta({ description: 'Objects with the values of the run, as long as they are retained' }),
        addenda: z
          .array(
            z.object({
              seq: z.int(),
              sha256: z.string(),
              sizeBytes: z.int(),
              sealedAt: Timestamp,
              document: z.string(),
              envelope: z.string(),
            }),
          )
          .meta({ description: 'One for each commit after the end of the run' }),
        moreAddendaSince: z
          .int()
          .optional()
          .meta({ description: 'Set if there are more: `since` of the next request' }),
      }),
    },
  }),
  getEvidenceFile: route({
    method: 'GET',
    path: '/api/v1/runs/{id}/evidence/{file}',
    right: 'evidence:read',
    summary: 'Returns the evidence bundle, its signed envelope or an artifact, byte for byte; supports Range',
    params: runParams.extend({
      file: z.enum(['bundle.json', 'bundle.dsse.json', 'values.json', 'enrichment.json', 'completion.json']).meta({
        description:
          '`values.json` has the values behind the digests of the bundle, `enrichment.json` what the run knew at its start, `completion.json` how it ended with the outputs of its steps',
      }),
    }),
    responses: { 200: FileBytes, 206: FileBytes },
  }),
  getEvidenceAddendum: route({
    method: 'GET',
    path: '/api/v1/runs/{id}/evidence/addenda/{seq}/{file}',
    right: 'evidence:read',
    summary: 'Returns an addendum to the evidence bundle or its signed envelope, byte for byte; supports Range',
    params: runParams.extend({
      seq: z.string().meta({ description: 'Number of the commit' }),
      file: z.enum(['addendum.json', 'addendum.dsse.json']),
    }),
    responses: { 200: FileBytes, 206: FileBytes },
  }),
};

export const textRoutes = {
  getText: route({
    method: 'GET',
    path: '/api/v1/texts/{hash}',
    right: 'evidence:read',
    summary: 'Returns the policy set or workflow version that evidence names by this hash; supports Range',
    params: z.object({ hash: z.string().meta({ description: 'Its SHA-256, in 64 hexadecimal digits' }) }),
    responses: { 200: FileBytes, 206: FileBytes },
  }),
};

export const changeFileRoutes = {
  getChangesFile: route({
    method: 'GET',
    path: '/api/v1/changes/days/{day}/{file}',
    right: 'changes:read',
    summary: 'Returns the changes of a past day (UTC) or their signed envelope; supports Range',
    params: z.object({
      day: z.iso.date().meta({ example: '2026-11-16' }),
      file: z.enum(['changes.json', 'changes.dsse.json']),
    }),
    responses: { 200: FileBytes, 206: FileBytes },
  }),
};

export const evidenceKeyRoutes = {
  listEvidenceKeys: route({
    method: 'GET',
    path: '/.well-known/countersign-keys.json',
    right: 'public',
    summary: 'Lists the public keys that verify evidence',
    responses: {
      200: z.object({
        keys: z.array(
          z.object({
            keyId: z.string(),
            validUntil: z.string().nullable(),
            algorithm: z.enum(['Ed25519', 'ECDSA P-256 with SHA-256']),
            fingerprint: z.string(),
            pem: z.string(),
          }),
        ),
      }),
    },
  }),
};
