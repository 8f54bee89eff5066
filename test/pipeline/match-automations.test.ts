import { describe, expect, it } from 'vitest';
import type { Automation } from '../../lambdas/pipeline/definitions.ts';
import { matchAutomations } from '../../lambdas/pipeline/match-automations.ts';
import type { Trigger } from '../../lambdas/run/run.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { OwnThreadExpressions } from '../fakes/own-thread-expressions.ts';
import { automation } from '../intake/intake-world.ts';

const expressions = new OwnThreadExpressions(() => 0);

const trigger: Trigger = {
  source: 'github',
  event: 'issues.opened',
  fields: { title: 'Checkout fails', number: 7 },
  payload: { sender: { login: 'octocat' } },
  receivedAt: STORY_BEGINS_AT,
};

async function starts(wanted: Automation, given = trigger): Promise<boolean> {
  return (await matchAutomations(expressions, 'acme', [wanted], given, () => {})).length === 1;
}

describe('an automation', () => {
  it.each([
    ['issues.opened', true],
    ['issues', true],
    ['issue', false],
    ['issues.open', false],
    ['issues.closed', false],
    ['issues.opened.again', false],
    ['', false],
  ])('for the event "%s" starts on issues.opened: %s', async (event, expected) => {
    expect(await starts(automation('x', { event }))).toBe(expected);
  });

  it('6.1 starts only for its own source, and only while it is enabled', async () => {
    expect(await starts(automation('x', { source: 'servicenow' }))).toBe(false);
    expect(await starts({ ...automation('x'), enabled: false })).toBe(false);
  });

  it.each([
    ['{% trigger.number = 7 %}', true],
    ['{% trigger.number = 8 %}', false],
    ['{% trigger.payload.sender.login = "octocat" %}', true],
    ['{% trigger.source = "github" and trigger.event = "issues.opened" %}', true],
    ['{% trigger.number %}', false],
    ['{% "true" %}', false],
    ['{% trigger.missing %}', false],
  ])('with the filter %s starts only on exactly true: %s', async (filter, expected) => {
    expect(await starts(automation('x', { filter }))).toBe(expected);
  });

  it('6.1 with several triggers starts once for an event that matches several of them', async () => {
    const { trigger: _one, ...rest } = automation('x');
    const several = (...filters: (string | undefined)[]): Automation => ({
      ...rest,
      triggers: filters.map((filter) => ({
        source: 'github',
        event: 'issues',
        ...(filter !== undefined && { filter }),
      })),
    });
    const matching = await matchAutomations(expressions, 'acme', [several(undefined, undefined)], trigger, () => {});
    expect(matching.map(({ name }) => name)).toEqual(['x']);
    expect(await starts(several('{% false %}', '{% true %}'))).toBe(true);
    expect(await starts(several('{% false %}', '{% false %}'))).toBe(false);
    // A broken filter of one trigger does not stop the others.
    expect(await starts(several('{% $error("no") %}', '{% true %}'))).toBe(true);
  });

  it('with a broken filter starts no run, is reported, and does not stop the others', async () => {
    const broken: string[] = [];
    const all = [automation('a'), automation('b', { filter: '{% $error("no") %}' }), automation('c')];
    const matching = await matchAutomations(expressions, 'acme', all, trigger, ({ name }) => broken.push(name));
    expect(matching.map(({ name }) => name)).toEqual(['a', 'c']);
    expect(broken).toEqual(['b']);
  });
});
