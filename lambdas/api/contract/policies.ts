import * as z from 'zod';
import type { PolicyDecision } from '../../policy/policy.ts';
import type { Outcome } from '../../policy/replay.ts';
import { PendingPolicies } from './definitions/people.ts';
import { route } from './route.ts';
import { json } from './schemas.ts';

/** One DynamoDB item of at most 400 KB stores the policies of a tenant. */
const POLICIES_MAX_BYTES = 300 * 1024;
const CASES_MAX_CHARACTERS = 100_000;
const FILE_NAME = /^[a-z0-9][a-z0-9._-]{0,58}\.cedar$/;

const Policies = z
  .discriminatedUnion('engine', [
    z.strictObject({
      engine: z.literal('cedar'),
      files: z
        .record(z.string(), z.string())
        .refine(
          (files) => Object.keys(files).every((name) => FILE_NAME.test(name)),
          'name files like change-freeze.cedar',
        ),
    }),
    z.strictObject({ engine: z.literal('rego'), wasmGzipBase64: z.base64() }),
  ])
  .refine(
    (policies) => Buffer.byteLength(JSON.stringify(policies)) <= POLICIES_MAX_BYTES,
    `all policies together have at most ${POLICIES_MAX_BYTES} bytes`,
  );

const ValidPolicies = z.object({ hash: z.string(), policies: z.array(z.string()).readonly() });
const InvalidPolicies = z.object({ problems: z.array(z.string()).readonly() });
const CheckedPolicies = z.union([ValidPolicies, InvalidPolicies]);

export const policyRoutes = {
  getPolicies: route({
    method: 'GET',
    path: '/api/v1/policies',
    right: 'policies:read',
    summary: "Returns the tenant's policies, their hash or problems, and the policies that ship with Countersign",
    responses: {
      200: ValidPolicies.partial().extend({
        problems: InvalidPolicies.shape.problems.optional(),
        engine: z.enum(['cedar', 'rego']),
        files: z.record(z.string(), z.string()).optional(),
        wasmGzipBase64: z.string().optional(),
        shipped: z.object({ schema: z.string(), files: z.record(z.string(), z.string()) }).optional(),
      }),
    },
  }),
  publishPolicies: route({
    method: 'PUT',
    path: '/api/v1/policies',
    right: 'policies:write',
    summary: "Replaces the tenant's policies",
    description:
      '202: the new policies do more than add forbids, and in a prod stage a second owner must confirm that. Until then nothing changes.',
    body: Policies,
    example: {
      engine: 'cedar',
      files: {
        'change-freeze.cedar':
          '@id("change-freeze") @reason("no changes in December")\nforbid (principal, action == Action::"execute", resource);\n',
      },
    },
    responses: {
      200: ValidPolicies.extend({ replaced: CheckedPolicies }),
      202: z.object({ pending: PendingPolicies, next: z.string() }),
    },
  }),
  testPolicies: route({
    method: 'POST',
    path: '/api/v1/policies/test',
    right: 'policies:read',
    summary: 'Tests policies with cases: which decision each request would get. Nothing changes',
    body: z.strictObject({
      policies: Policies,
      cases: z
        .string()
        .max(CASES_MAX_CHARACTERS)
        .meta({ description: 'A YAML file with cases, as `countersign policy test` reads it' }),
    }),
    example: {
      policies: { engine: 'cedar', files: {} },
      cases: '- name: a label needs no approval\n  request: { tool: github.labels.add }\n  expect: allow\n',
    },
    responses: {
      200: ValidPolicies.extend({
        cases: z.array(
          z.object({
            name: z.string(),
            decision: json<PolicyDecision>('The decision of these policies'),
            wrong: z
              .array(z.string())
              .meta({ description: 'Differences from the expected decision; empty if the case passed' }),
          }),
        ),
      }),
    },
  }),
  replayPolicies: route({
    method: 'POST',
    path: '/api/v1/policies/replay',
    right: 'policies:replay',
    summary: 'Compares recorded decisions with the decisions of other policies, the newest runs first',
    body: z.strictObject({
      policies: Policies,
      since: z.iso.datetime().optional(),
      cursor: z.string().optional(),
    }),
    responses: {
      200: z.object({
        runs: z.int(),
        examined: z.int(),
        flips: z.array(
          z.object({
            runId: z.string(),
            step: z.string(),
            tool: z.string(),
            target: z.string(),
            from: json<Outcome>('The recorded decision'),
            to: json<Outcome>('The decision of the other policies'),
            loosens: z.boolean(),
            reasons: z.array(z.string()),
          }),
        ),
        nextCursor: z.string().nullable(),
      }),
    },
  }),
};
