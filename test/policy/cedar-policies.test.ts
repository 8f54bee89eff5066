import { describe, expect, it } from 'vitest';
import { CedarPolicies } from '../../lambdas/policy/cedar-policies.ts';
import { CedarRuntime, loadCedar } from '../../lambdas/policy/cedar-runtime.ts';
import type { PolicyDecision, PolicyRequest } from '../../lambdas/policy/policy.ts';
import { InvalidPolicies } from '../../lambdas/policy/policy-engine.ts';
import { readShippedPolicies } from '../../lambdas/policy/shipped-policies.ts';
import { aRequest } from './requests.ts';

const shipped = readShippedPolicies();
const runtime = new CedarRuntime(loadCedar, () => shipped.schema);
const engine = new CedarPolicies(runtime, () => shipped);

const prepared = (text?: string) =>
  engine.prepare({ engine: 'cedar', files: text === undefined ? {} : { 'tenant.cedar': text } });

async function decide(request: PolicyRequest, text?: string): Promise<PolicyDecision> {
  return (await prepared(text)).decide(request);
}

async function problemsOf(text: string): Promise<readonly string[]> {
  const error = await prepared(text).catch((thrown: unknown) => thrown);
  if (error instanceof InvalidPolicies) return error.problems;
  throw new Error(`not refused as invalid, but: ${error}`);
}

const permitWithApproval = (annotations: string, condition = 'true') =>
  `${annotations} permit (principal, action == Action::"executeWithApproval", resource) when { ${condition} };`;

describe('the shipped policies', () => {
  it('cause no warnings and have readable ids and reasons', async () => {
    const set = await prepared();
    expect(set.warnings).toEqual([]);
    expect(set.decide(aRequest())).toEqual({
      verdict: 'allow',
      policyHash: set.hash,
      policies: ['low-risk-writes'],
      reasons: ['a low-risk write needs no approval'],
    });
  });

  it.each([
    ['a read of any risk', { effect: 'read', risk: 'high', blastRadius: 'high' }],
    ['a low-risk write', { risk: 'low' }],
    ['an undo of a medium risk', { undo: true, risk: 'medium' }],
  ] as const)('allow %s', async (_, action) => {
    expect((await decide(aRequest(action))).verdict).toBe('allow');
  });

  it.each([
    ['a medium risk: one person of that tier', { risk: 'medium' }, { tier: 'medium', quorum: 1 }],
    ['a high risk: two people', { risk: 'high' }, { tier: 'high', quorum: 2 }],
    ['a far reaching write of low risk: two people', { blastRadius: 'high' }, { tier: 'low', quorum: 2 }],
    ['a destructive write: two people', { destructive: true, risk: 'medium' }, { tier: 'medium', quorum: 2 }],
    ['an undo of high risk: two people', { undo: true, risk: 'high' }, { tier: 'high', quorum: 2 }],
    ['an undo with high blast radius: two people', { undo: true, blastRadius: 'high' }, { tier: 'low', quorum: 2 }],
  ] as const)('ask for %s', async (_, action, requirement) => {
    expect(await decide(aRequest(action))).toMatchObject({
      verdict: 'needs_approval',
      requirement: { ...requirement, groups: [] },
    });
  });
});

describe("a tenant's policies", () => {
  it('loosen with a permit', async () => {
    const text = `@id("quick") permit (principal == Automation::"triage-incident", action == Action::"execute",
      resource == Operation::"servicenow.incident.update") when { context.fields == ["assignment_group"] };`;
    expect(await decide(aRequest({ risk: 'medium' }), text)).toMatchObject({ verdict: 'allow', policies: ['quick'] });
    const more = aRequest({ risk: 'medium', fields: { assignment_group: 'network', state: '7' } });
    expect((await decide(more, text)).verdict).toBe('needs_approval');
  });

  it('cannot loosen destructive writes or high blast radius', async () => {
    const text = 'permit (principal, action, resource);';
    for (const action of [{ destructive: true }, { blastRadius: 'high' }] as const) {
      expect(await decide(aRequest(action), text)).toMatchObject({
        verdict: 'needs_approval',
        requirement: { quorum: 2 },
        policies: expect.arrayContaining(['never-alone', 'two-people']),
      });
    }
  });

  it('tighten with a forbid and its reason', async () => {
    const text = `@id("freeze") @reason("change freeze until Monday")
      forbid (principal, action, resource in Connector::"servicenow") when { context.environment == Environment::"prod" };`;
    expect(await decide(aRequest({ environment: 'prod' }), text)).toMatchObject({
      verdict: 'deny',
      code: 'POLICY_DENIED',
      policies: ['freeze'],
      reasons: ['change freeze until Monday'],
    });
    expect((await decide(aRequest({ environment: 'dev' }), text)).verdict).toBe('allow');
  });

  it('require approval by forbidding only execute', async () => {
    const text = `@id("ask") @reason("closing needs a person")
      forbid (principal in Workspace::"default", action == Action::"execute", resource) when { context.values.contains("state=7") };`;
    expect(await decide(aRequest({ fields: { state: 7 } }), text)).toMatchObject({
      verdict: 'needs_approval',
      requirement: { tier: 'low', quorum: 1 },
      policies: ['ask', 'one-person'],
      reasons: ['closing needs a person', 'one person must approve a write of this risk'],
    });
    expect((await decide(aRequest({ fields: { state: 6 } }), text)).verdict).toBe('allow');
  });

  it('combine several requirements: highest tier, largest quorum, all groups', async () => {
    const text = [
      permitWithApproval('@id("a") @tier("high") @quorum("1") @groups("sre, dba")'),
      permitWithApproval('@id("b") @tier("low") @quorum("3") @groups("net")'),
      permitWithApproval('@id("c") @quorum("9")', 'context.source == "github"'),
    ].join('\n');
    expect(await decide(aRequest({ risk: 'medium' }), text)).toMatchObject({
      requirement: { tier: 'high', quorum: 3, groups: [['dba', 'sre'], ['net']] },
      policies: ['one-person', 'a', 'b'].sort(),
    });
  });

  it('see list elements, nested values by path, and empty values', async () => {
    const text = `@id("seen") forbid (principal, action, resource)
      when { context.values.containsAll(["labels=triage", "caller.vip=true", "state=7", "none=[]", "nothing={}"]) };`;
    const fields = { labels: ['bug', 'triage'], caller: { vip: true }, state: 7, none: [], nothing: {} };
    expect(await decide(aRequest({ fields }), text)).toMatchObject({ verdict: 'deny', policies: ['seen'] });
  });

  it.each([
    ['a long text', { note: 'x'.repeat(60_000) }, `note=${'x'.repeat(60_000)}`],
    [
      'a long text beneath others',
      { body: { items: ['a', { text: 'y'.repeat(201) }] } },
      `body.items.text=${'y'.repeat(201)}`,
    ],
  ])('see %s in full', async (_, fields, seen) => {
    const text = `@id("seen") forbid (principal, action, resource) when { context.values.contains("${seen}") };`;
    expect(await decide(aRequest({ fields }), text)).toMatchObject({ verdict: 'deny', policies: ['seen'] });
  });

  it('permit a set of values only if nothing else is written, regardless of its length', async () => {
    const text = `@id("exact") permit (principal, action == Action::"execute", resource)
      when { context.values == ["state=2"] };`;
    const asked = (fields: object) => decide(aRequest({ risk: 'medium', fields: { ...fields } }), text);
    expect((await asked({ state: '2' })).verdict).toBe('allow');
    expect((await asked({ state: '2', close_notes: 'z'.repeat(5000) })).verdict).toBe('needs_approval');
    expect((await asked({ state: '2', close_notes: [] })).verdict).toBe('needs_approval');
  });

  it.each([
    [`7${' '.repeat(300)}`],
    [`${' '.repeat(300)}7`],
    ['\n7\t'],
    ['7\u200b'],
    ['\uff17'],
    ['\u00a07'],
    ['7\u{e0001}'],
    ['7\u0000'],
  ])('forbid a value by its normalized text: %j', async (state) => {
    const text = `@id("closing") forbid (principal, action, resource)
      when { context.normalizedValues.contains("state=7") };`;
    expect(await decide(aRequest({ fields: { state } }), text)).toMatchObject({
      verdict: 'deny',
      policies: ['closing'],
    });
    expect((await decide(aRequest({ fields: { state: '70' } }), text)).verdict).toBe('allow');
  });

  it('ignore case in normalized values and permit only exact values', async () => {
    const forbid = `@id("urgent") forbid (principal, action, resource)
      when { context.normalizedValues.contains("labels=needs urgent care") };`;
    expect((await decide(aRequest({ fields: { labels: [' Needs\u00a0URGENT  care'] } }), forbid)).verdict).toBe('deny');
    const permit = `permit (principal, action == Action::"execute", resource) when { context.values.contains("state=2") };`;
    expect((await decide(aRequest({ risk: 'medium', fields: { state: '2 ' } }), permit)).verdict).toBe(
      'needs_approval',
    );
  });

  it('can require approval for a long text', async () => {
    const text = `@id("long") forbid (principal, action == Action::"execute", resource) when { context.longestValue > 200 };`;
    expect((await decide(aRequest({ fields: { a: 'x'.repeat(200) } }), text)).verdict).toBe('allow');
    expect((await decide(aRequest({ fields: { a: 'x', b: ['x'.repeat(201)] } }), text)).verdict).toBe('needs_approval');
  });

  it('are part of the hash, like the shipped policies', async () => {
    const hashes = await Promise.all(
      [undefined, 'permit (principal, action, resource);', 'permit (principal, action, resource) ;'].map(
        async (text) => (await prepared(text)).hash,
      ),
    );
    const other = new CedarPolicies(runtime, () => ({ ...shipped, files: { 'default.cedar': '' } }));
    hashes.push((await other.prepare({ engine: 'cedar', files: {} })).hash);
    expect(new Set(hashes).size).toBe(4);
    expect((await prepared()).hash).toBe(hashes[0]);
  });
});

describe('nothing is allowed by mistake', () => {
  it('without any policy, everything is denied', async () => {
    const none = new CedarPolicies(runtime, () => ({ ...shipped, files: {} }));
    expect((await none.prepare({ engine: 'cedar', files: {} })).decide(aRequest({ effect: 'read' }))).toMatchObject({
      verdict: 'deny',
      code: 'POLICY_DENIED',
      reasons: ['no policy permits it'],
    });
  });

  it.each([
    ['a broken text', 'permit (principal', 'tenant.cedar:1: '],
    ['an unknown action', '\n\npermit (principal, action == Action::"run", resource);', 'tenant.cedar:3: '],
    ['a misspelt level', 'forbid (principal, action, resource) when { resource.risk == Risk::"hihg" };', '"medium"'],
    ['a level as text', 'forbid (principal, action, resource) when { resource.risk == "high" };', 'tenant.cedar:1'],
    ['an unknown attribute', 'forbid (principal, action, resource) when { context.user == "x" };', '`user`'],
    ['a quorum in words', permitWithApproval('@quorum("two")'), '@quorum: must be the number of people, "1" to "10"'],
    ['a quorum of nobody', permitWithApproval('@quorum("0")'), '@quorum'],
    ['a quorum nobody can meet', permitWithApproval('@quorum("11")'), '@quorum'],
    ['an unknown tier', permitWithApproval('@tier("severe")'), '@tier'],
    ['an empty group', permitWithApproval('@groups("sre,,dba")'), '@groups'],
    ['a misspelt annotation', permitWithApproval('@quorun("2")'), 'unknown annotation @quorun; did you mean @quorum?'],
    [
      'a quorum that would mean nothing',
      '@quorum("2") permit (principal, action == Action::"execute", resource);',
      'only allowed on a permit of Action::"executeWithApproval"',
    ],
    ['a quorum on a forbid', '@quorum("2") forbid (principal, action, resource);', 'only allowed on'],
    [
      'a template',
      'permit (principal == ?principal, action, resource);',
      'tenant.cedar:1: templates are not supported',
    ],
    ['an id that is taken', '@id("reads") forbid (principal, action, resource);', 'another policy has @id("reads")'],
  ])('%s is rejected with its place', async (_, text, said) => {
    expect((await problemsOf(text)).join('\n')).toContain(said);
  });

  it('all problems are reported at once', async () => {
    const text = [permitWithApproval('@quorum("two")'), permitWithApproval('@tier("severe")')].join('\n');
    expect(await problemsOf(text)).toEqual([
      expect.stringContaining('tenant.cedar:1'),
      expect.stringContaining('tenant.cedar:2'),
    ]);
  });

  it('a shipped file cannot be replaced', async () => {
    await expect(engine.prepare({ engine: 'cedar', files: { 'default.cedar': '' } })).rejects.toThrow(InvalidPolicies);
  });

  it('a policy that never applies causes a warning', async () => {
    const text = 'forbid (principal, action, resource) when { principal is Connector };';
    expect((await prepared(text)).warnings).toEqual([expect.stringContaining('tenant.cedar:1')]);
  });

  it.each([
    ['a risk', { risk: 'extreme' }],
    ['an environment', { environment: 'moon' }],
    ['an effect', { effect: 'magic' }],
    ['a blast radius', { blastRadius: 'galaxy' }],
    ['the kind of a value', { reversible: 'yes' }],
    ['a missing target', { target: undefined }],
  ])('an unknown value of %s is an error', async (_, action) => {
    const set = await prepared('permit (principal, action, resource);');
    expect(() => set.decide(aRequest(action as never))).toThrow();
    expect(set.decide(aRequest())).toMatchObject({ verdict: 'allow' });
  });

  it('an error in one policy fails the whole decision', async () => {
    const text = `@id("overflows") forbid (principal, action, resource)
      when { context.writesBefore + 9223372036854775807 > 0 };`;
    const set = await prepared(text);
    expect(() => set.decide(aRequest({}, { writesBefore: 1 }))).toThrow('overflows');
    expect(set.decide(aRequest({}, { writesBefore: 0 }))).toMatchObject({ verdict: 'deny', policies: ['overflows'] });
  });

  it('a set that crashes the engine does not affect others', async () => {
    const others = await prepared();
    expect(others.decide(aRequest()).verdict).toBe('allow');
    const deep = `permit (principal, action, resource) when { ${'('.repeat(20_000)}true${')'.repeat(20_000)} };`;
    expect(await problemsOf(deep)).toEqual([
      'these policies exhaust the memory of the policy engine; nest expressions less deeply',
    ]);
    expect(others.decide(aRequest()).verdict).toBe('allow');
  });

  it('more sets than the engine holds still decide correctly', async () => {
    const sets = await Promise.all(
      Array.from({ length: 40 }, (_, n) => prepared(`@id("n${n}") forbid (principal, action, resource);`)),
    );
    for (const round of [sets, sets.toReversed()]) {
      for (const set of round) expect(set.decide(aRequest()).policies).toEqual([`n${sets.indexOf(set)}`]);
    }
  });
});
