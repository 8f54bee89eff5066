import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PROFILE_NAMES, type ProfileName } from '../../lambdas/agents/agent-terms.ts';
import {
  builtInProfile,
  CommandPattern,
  DEFAULT_PROFILE,
  listViolation,
  PROFILES,
  ProfileDefinition,
  profileViolation,
} from '../../lambdas/agents/profiles.ts';

const SYSTEMCTL = '/usr/bin/systemctl';
const command = (executable: string, ...args: string[]) => ({ executable, args });
const lists = (name: ProfileName, allow: CommandPattern[], deny: CommandPattern[] = []) =>
  ProfileDefinition.parse({ name, allow, deny });
const allows = (pattern: CommandPattern, executable: string, ...args: string[]) =>
  listViolation({ allow: [pattern], deny: [] }, command(executable, ...args)) === undefined;

describe('acceptance: sandbox policies enforce environment-specific restrictions: lists of profiles', () => {
  it('until a tenant defines lists, nothing runs in prod and staging, and dev refuses only what its deny list names', () => {
    for (const name of PROFILE_NAMES) {
      const found = profileViolation(builtInProfile(name), command('/usr/bin/uptime'));
      expect(found?.rule, name).toBe(name === 'dev-flex' ? undefined : 'allow-list');
    }
    expect(profileViolation(builtInProfile('dev-flex'), command('/usr/bin/sudo', 'ls'))?.rule).toBe('deny-list');
  });

  it('prod and staging need the command on the allow list; a deny list overrules it; dev-flex has no allow list', () => {
    const pattern = { executable: SYSTEMCTL, args: ['restart', '*'] };
    const denied = { executable: SYSTEMCTL, args: ['restart', 'sshd'] };
    for (const name of ['prod-critical', 'prod-standard', 'staging-standard'] as const) {
      const profile = lists(name, [pattern], [denied]);
      expect(profileViolation(profile, command(SYSTEMCTL, 'restart', 'web'))).toBeUndefined();
      expect(profileViolation(profile, command(SYSTEMCTL, 'restart', 'sshd'))?.rule).toBe('deny-list');
      expect(profileViolation(profile, command(SYSTEMCTL, 'stop', 'web'))?.rule).toBe('allow-list');
      expect(profileViolation(profile, command('/usr/bin/uptime'))?.message).toBe(
        `profile ${name}: the allow list does not have /usr/bin/uptime`,
      );
    }
    const dev = lists('dev-flex', [], [denied]);
    expect(profileViolation(dev, command('/usr/bin/uptime'))).toBeUndefined();
    expect(profileViolation(dev, command(SYSTEMCTL, 'restart', 'sshd'))?.rule).toBe('deny-list');
  });

  it('each environment has a default profile of its own, and prod profiles need a rollback', () => {
    for (const [environment, name] of Object.entries(DEFAULT_PROFILE)) {
      expect(PROFILES[name].environment).toBe(environment);
    }
    const needing = PROFILE_NAMES.filter((name) => PROFILES[name].needsRollback);
    expect(needing).toEqual(['prod-critical', 'prod-standard']);
  });
});

describe('a pattern', () => {
  it('names one executable by its only path', () => {
    expect(allows({ executable: SYSTEMCTL }, SYSTEMCTL, 'anything', 'at all')).toBe(true);
    for (const other of ['/usr/bin/systemctl2', '/usr/bin', 'systemctl', '/USR/BIN/SYSTEMCTL', '/bin/systemctl']) {
      expect(allows({ executable: SYSTEMCTL }, other), other).toBe(false);
    }
    for (const hidden of ['/usr/bin/../bin/sudo', '/usr/./bin/sudo', '//usr/bin/sudo', '/usr/bin/sudo/', '/']) {
      expect(listViolation({ deny: [{ executable: '/usr/bin/sudo' }] }, command(hidden))?.rule, hidden).toBe(
        'executable',
      );
      expect(CommandPattern.safeParse({ executable: hidden }).success, hidden).toBe(false);
    }
  });

  it('has one pattern for each argument: none more, none less, and `*` stays within its argument', () => {
    const restart = { executable: SYSTEMCTL, args: ['restart', 'web-*.service'] };
    expect(allows(restart, SYSTEMCTL, 'restart', 'web-a.service')).toBe(true);
    expect(allows(restart, SYSTEMCTL, 'restart', 'web-.service')).toBe(true);
    expect(allows(restart, SYSTEMCTL, 'restart', 'web-a.service', '--now')).toBe(false);
    expect(allows(restart, SYSTEMCTL, 'restart')).toBe(false);
    expect(allows(restart, SYSTEMCTL, 'restart', 'xweb-a.service')).toBe(false);
    expect(allows(restart, SYSTEMCTL, 'restart web-a.service')).toBe(false);
    expect(allows({ executable: SYSTEMCTL, args: [] }, SYSTEMCTL)).toBe(true);
    expect(allows({ executable: SYSTEMCTL, args: [] }, SYSTEMCTL, '')).toBe(false);
  });

  it('has no wildcards but `*`: other signs stand for themselves', () => {
    const one = (pattern: string, argument: string) => allows({ executable: '/x', args: [pattern] }, '/x', argument);
    expect(one('a.c', 'abc')).toBe(false);
    expect(one('[ab]', 'a')).toBe(false);
    expect(one('a?', 'ab')).toBe(false);
    expect(one('*a*b*', 'xxaxxbxx')).toBe(true);
    expect(one('*a*b*', 'xxbxxaxx')).toBe(false);
    expect(one('ab*ba', 'aba')).toBe(false);
    expect(one('*', '')).toBe(true);
    expect(one('*', 'line\nother line')).toBe(true);
  });

  it('matches exactly what the equivalent regular expression matches', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 });
    fc.assert(
      fc.property(text, fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 10 }), (pattern, argument) => {
        const expected = new RegExp(`^${pattern.replaceAll('*', '[^]*')}$`).test(argument);
        expect(allows({ executable: '/x', args: [pattern] }, '/x', argument)).toBe(expected);
      }),
      { numRuns: 2_000 },
    );
  });

  it('with many wildcards takes no time on a long argument', () => {
    const before = process.threadCpuUsage();
    expect(allows({ executable: '/x', args: ['*a'.repeat(200)] }, '/x', 'a'.repeat(4_000))).toBe(true);
    expect(allows({ executable: '/x', args: [`${'*a'.repeat(200)}b`] }, '/x', 'a'.repeat(4_000))).toBe(false);
    expect(process.threadCpuUsage(before).user).toBeLessThan(2_000_000);
  });
});
