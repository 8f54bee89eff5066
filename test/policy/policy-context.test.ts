import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CedarPolicies } from '../../lambdas/policy/cedar-policies.ts';
import { CedarRuntime, loadCedar } from '../../lambdas/policy/cedar-runtime.ts';
import { checkPolicies } from '../../lambdas/policy/check-policies.ts';
import { FailClosedPolicy, POLICY_TIMEOUT_MS } from '../../lambdas/policy/fail-closed-policy.ts';
import type { PolicyRequest, TenantPolicies } from '../../lambdas/policy/policy.ts';
import { wirePolicyEngines } from '../../lambdas/policy/policy.wiring.ts';
import { beforeValues, nowOf, triggerFacts } from '../../lambdas/policy/policy-facts.ts';
import { readShippedPolicies } from '../../lambdas/policy/shipped-policies.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';
import { aRequest } from './requests.ts';

const shipped = readShippedPolicies();
const engine = new CedarPolicies(new CedarRuntime(loadCedar, () => shipped.schema), () => shipped);
const prepared = (text: string) => engine.prepare({ engine: 'cedar', files: { 'tenant.cedar': text } });
const examples = /```cedar\n([\s\S]*?)```/.exec(
  readFileSync(new URL('../../policies/README.md', import.meta.url), 'utf8'),
)?.[1];
const example = (id: string) => {
  const text = examples?.split('\n\n').find((policy) => policy.startsWith(`@id("${id}")`));
  if (!text) throw new Error(`policies/README.md has no example ${id}`);
  return text;
};

const SATURDAY = '2026-01-10T23:59:59.999Z';
const MONDAY = '2026-01-12T00:00:00.000Z';

describe('the examples of policies/README.md', () => {
  it('are valid together', async () => {
    const tools = ['servicenow.incident.update'];
    const policies: TenantPolicies = { engine: 'cedar', files: { 'examples.cedar': examples ?? '' } };
    expect(await checkPolicies(wirePolicyEngines(), policies, tools)).toHaveProperty('hash');
  });

  it('a weekend freeze denies on Saturday in UTC and not on Monday, and never denies a read', async () => {
    const set = await prepared(example('weekend-freeze'));
    const at = (time: string, effect: 'natural' | 'read' = 'natural') =>
      set.decide(aRequest({ environment: 'prod', effect }, { at: time }));
    expect(at(SATURDAY)).toMatchObject({ verdict: 'deny', policies: ['weekend-freeze'] });
    expect(at(SATURDAY, 'read')).toMatchObject({ verdict: 'allow' });
    expect(at(MONDAY)).toMatchObject({ verdict: 'allow' });
  });

  it('priority 1 needs two people; without a priority the usual rule applies', async () => {
    const set = await prepared(example('priority-1-needs-two'));
    const quorum = (trigger: PolicyRequest['trigger']) => set.decide(aRequest({ risk: 'medium' }, { trigger }));
    const event = 'incident.insert';
    expect(quorum({ event, priority: '1' })).toMatchObject({ requirement: { quorum: 2 } });
    expect(quorum({ event, priority: '3' })).toMatchObject({ requirement: { quorum: 1 } });
    expect(quorum({ event })).toMatchObject({ requirement: { quorum: 1 } });
    expect(quorum(undefined)).toMatchObject({ requirement: { quorum: 1 } });
  });

  it('reassigning needs approval, also if the current group is not known', async () => {
    const set = await prepared(example('reassigning'));
    const verdict = (before: PolicyRequest['before']) => set.decide(aRequest({}, { before })).verdict;
    expect(set.usesBefore).toBe(true);
    expect(verdict(beforeValues({ assignment_group: '' }))).toBe('allow');
    expect(verdict(beforeValues({ assignment_group: 'database' }))).toBe('needs_approval');
    expect(verdict(beforeValues({ assignment_group: 'x'.repeat(5_000) }))).toBe('needs_approval');
    expect(verdict(undefined)).toBe('needs_approval');
  });
});

describe('the context of a decision', () => {
  it('has hour, date and datetime in UTC, so that a policy can use another time zone', async () => {
    const inLisbonAtNight = 'context.now.time.offset(duration("1h")).toTime() < duration("6h")';
    const set = await prepared(`forbid (principal, action, resource) when { ${inLisbonAtNight} };`);
    const verdict = (at: string) => set.decide(aRequest({}, { at })).verdict;
    expect(verdict('2026-01-07T04:59:59Z')).toBe('deny');
    expect(verdict('2026-01-07T05:00:00Z')).toBe('allow');
    expect(nowOf({ at: '2026-01-08T00:30:00+02:00' })).toEqual({
      time: '2026-01-07T22:30:00.000Z',
      date: '2026-01-07',
      weekday: 'wednesday',
      hour: 22,
    });
  });

  it('a request without a time is denied', async () => {
    const set = await prepared('permit (principal, action, resource) when { context.now.hour < 24 };');
    expect(() => set.decide(aRequest({}, { at: undefined }))).toThrow('no time');
    expect(() => set.decide(aRequest({}, { at: 'tomorrow' }))).toThrow('no time');
  });

  it('a fact that may be absent must be tested with has', async () => {
    for (const fact of ['context.trigger.priority == "1"', 'context.before.values.contains("state=6")']) {
      await expect(prepared(`forbid (principal, action, resource) when { ${fact} };`)).rejects.toThrow(/has/);
    }
  });

  it('a misspelt weekday is an error', async () => {
    const policy = 'forbid (principal, action, resource) when { context.now.weekday == Weekday::"Sat" };';
    await expect(prepared(policy)).rejects.toThrow(/Weekday/);
  });

  it('has all labels of the subject of a GitHub event, or none', () => {
    const facts = (labels: unknown) =>
      triggerFacts({ event: 'issues.opened', fields: {}, payload: { issue: { labels } } });
    expect(facts([{ name: 'sev1' }, { name: 'bug' }])).toEqual({ event: 'issues.opened', labels: ['sev1', 'bug'] });
    expect(facts([])).toEqual({ event: 'issues.opened', labels: [] });
    for (const unusable of [undefined, [{}], [{ name: 'x'.repeat(201) }], Array(101).fill({ name: 'x' }), 'sev1']) {
      expect(facts(unusable)).toEqual({ event: 'issues.opened' });
    }
  });

  it('has severity and priority as text of limited length', () => {
    const facts = (severity: unknown) =>
      triggerFacts({ event: 'incident.insert', fields: { severity, priority: '2' }, payload: null });
    expect(facts('1')).toEqual({ event: 'incident.insert', severity: '1', priority: '2' });
    for (const unusable of [undefined, 1, '', 'x'.repeat(201), { toString: () => '1' }]) {
      expect(facts(unusable)).toEqual({ event: 'incident.insert', priority: '2' });
    }
  });

  it('has values before the write up to a size, and names the others', () => {
    const long = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`f${index}`, 'x'.repeat(1_500)]));
    const { fields, omitted } = beforeValues({ state: '1', note: 'x'.repeat(3_000), ...long });
    expect(fields).toMatchObject({ state: '1', f0: long.f0 });
    expect(omitted).toContain('note');
    expect(JSON.stringify(fields).length).toBeLessThan(20_000);
    expect([...Object.keys(fields), ...omitted].sort()).toEqual(['note', 'state', ...Object.keys(long)].sort());
  });
});

describe('the values before a write', () => {
  const deciding = (text: string, nowMs = () => 0) =>
    new FailClosedPolicy({
      tenantPolicies: async () => ({ engine: 'cedar', files: { 'tenant.cedar': text } }),
      engines: { cedar: engine, rego: { prepare: () => Promise.reject(new Error('unused')) } },
      isTool: () => true,
      now: () => 0,
      stopwatch: { nowMs, after: () => () => {} },
      log: new MemoryLog(),
    });

  it('are read only for policies that use them, and at most once', async () => {
    let reads = 0;
    const readBefore = async () => {
      reads += 1;
      return beforeValues({ assignment_group: '' });
    };
    await deciding(example('weekend-freeze')).decide(aRequest(), { readBefore });
    expect(reads).toBe(0);
    expect(await deciding(example('reassigning')).decide(aRequest(), { readBefore })).toMatchObject({
      verdict: 'allow',
    });
    expect(reads).toBe(1);
    const known = aRequest({}, { before: beforeValues({ assignment_group: 'x' }) });
    expect((await deciding(example('reassigning')).decide(known, { readBefore })).verdict).toBe('needs_approval');
    expect(reads).toBe(1);
  });

  it('are absent if the target cannot be read, and a failure denies', async () => {
    const policy = deciding(example('reassigning'));
    expect((await policy.decide(aRequest(), { readBefore: async () => undefined })).verdict).toBe('needs_approval');
    const failing = () => Promise.reject(new Error('broken'));
    expect(await policy.decide(aRequest(), { readBefore: failing })).toMatchObject({
      verdict: 'deny',
      code: 'POLICY_ERROR',
    });
  });

  it('may take longer to read than policy has to decide', async () => {
    let ms = 0;
    const policy = deciding(example('reassigning'), () => ms);
    const slow = async () => {
      ms += 2 * POLICY_TIMEOUT_MS;
      return beforeValues({ assignment_group: '' });
    };
    expect((await policy.decide(aRequest(), { readBefore: slow })).verdict).toBe('allow');
  });
});
