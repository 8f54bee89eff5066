import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RISKS } from '../../lambdas/connectors/connector.ts';
import { CedarPolicies } from '../../lambdas/policy/cedar-policies.ts';
import { type Cedar, CedarRuntime, loadCedar } from '../../lambdas/policy/cedar-runtime.ts';
import type { PolicyDecision, PolicyRequest, ProposedAction } from '../../lambdas/policy/policy.ts';
import { readShippedPolicies } from '../../lambdas/policy/shipped-policies.ts';
import { aRequest } from './requests.ts';

const SEED = 20_261_118;
const shipped = readShippedPolicies();

const cedar = loadCedar();
const questions = { count: 0 };
const counting: Cedar = {
  ...cedar,
  statefulIsAuthorized: (call) => {
    questions.count += 1;
    return cedar.statefulIsAuthorized(call);
  },
};
const engine = new CedarPolicies(
  new CedarRuntime(
    () => counting,
    () => shipped.schema,
  ),
  () => shipped,
);

/** A set that has not been asked anything yet. */
const newSet = (text?: string) =>
  engine.prepare({ engine: 'cedar', files: text === undefined ? {} : { 'tenant.cedar': text } });

/** How many questions the engine is asked. */
function asked(work: () => void): number {
  const { count } = questions;
  work();
  return questions.count - count;
}

const forbid = (condition: string) =>
  `@id("own") @reason("own") forbid (principal, action, resource) when { ${condition} };`;

const outcome = (set: Awaited<ReturnType<typeof newSet>>, request: PolicyRequest): PolicyDecision | 'refused' => {
  try {
    return set.decide(request);
  } catch {
    return 'refused';
  }
};

/** Writes of one run: what differs between them, and by mistake or in the rows of another version could. */
const requests = fc
  .record({
    action: fc.record(
      {
        target: fc.constantFrom('servicenow:acme:incident:1', 'servicenow:acme:incident:2', '\ud800'),
        fields: fc.constantFrom<Record<string, unknown>>({ state: '7' }, { state: ' 7' }, { state: 7 }, {}),
        risk: fc.constantFrom(...RISKS),
        blastRadius: fc.constantFrom(...RISKS),
        environment: fc.constantFrom('prod', 'dev', 'qa'),
        undo: fc.boolean(),
        makers: fc.constantFrom<string[]>([], ['ana'], ['ana', 'ben']),
      },
      { requiredKeys: [] },
    ),
    run: fc.record(
      {
        automation: fc.constantFrom('triage', 'close'),
        writesBefore: fc.constantFrom(0, 1, 1.5),
        at: fc.constantFrom('2026-01-07T12:00:00.000Z', '2026-01-08T03:00:00.000Z'),
        trigger: fc.constantFrom({ event: 'incident.insert' }, { event: 'incident.insert', severity: '1' }),
      },
      { requiredKeys: [] },
    ),
  })
  .map(({ action, run }) => aRequest(action as Partial<ProposedAction>, run));

const POLICIES = [
  undefined,
  forbid('context.target == "servicenow:acme:incident:1"'),
  forbid('context.values.contains("state=7")'),
  forbid('context.now.hour < 6'),
  forbid('context has trigger.severity && context.trigger.severity == "1"'),
  forbid('{ Var: 1, makers: context.makers }.makers.contains("ben")'),
  forbid('principal == Automation::"close" && context.writesBefore > 0'),
  forbid('[context].contains(context) && context.environment == Environment::"prod"'),
];

it.each(POLICIES)('with %s, a set decides each request as a set that was asked nothing before', async (text) => {
  const set = await newSet(text);
  await fc.assert(
    fc.asyncProperty(requests, async (request) => {
      expect(outcome(set, request)).toEqual(outcome(await newSet(text), request));
    }),
    { seed: SEED, numRuns: 25 },
  );
});

it('asks the engine once for writes that differ in what no policy reads', async () => {
  const set = await newSet();
  const first = set.decide(aRequest());
  const others = [
    aRequest({ target: 'servicenow:acme:incident:1', fields: { state: '7', caller: 'Ana' } }),
    aRequest({ makers: ['ben'] }, { at: '2026-01-07T03:00:00.000Z', writesBefore: 4 }),
  ];
  expect(asked(() => others.map((request) => expect(set.decide(request)).toEqual(first)))).toBe(0);
});

it('asks again for another automation, tool or environment, and for each attribute that a policy reads', async () => {
  const set = await newSet(forbid('context.makers.contains("ben")'));
  const requests = [
    aRequest(),
    aRequest({}, { automation: 'close' }),
    aRequest({ tool: 'servicenow.incident.note' }),
    aRequest({ reversible: false }),
    aRequest({ environment: 'prod' }),
    aRequest({ makers: ['ana'] }),
  ];
  expect(asked(() => requests.map((request) => set.decide(request)))).toBe(requests.length);
});

it.each([
  ['an unknown environment', aRequest({ environment: 'qa' as 'dev' })],
  ['a number that is not whole', aRequest({}, { writesBefore: 1.5 })],
  ['a number for a text', aRequest({ target: 7 as unknown as string })],
  ['makers that are not texts', aRequest({ makers: [7 as unknown as string] })],
  ['a record for a set', aRequest({ makers: {} as unknown as string[] })],
])('refuses %s, also after it has permitted a write that differs in nothing else', async (_, request) => {
  const set = await newSet();
  expect(set.decide(aRequest()).verdict).toBe('allow');
  expect(() => set.decide(request)).toThrow();
});

it('asks each time if a policy uses the context as a whole', async () => {
  const set = await newSet(forbid('[context].contains(context) && context.undo'));
  const first = asked(() => set.decide(aRequest()));
  expect(first).toBeGreaterThan(0);
  expect(asked(() => set.decide(aRequest()))).toBe(first);
});
