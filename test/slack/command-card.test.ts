import { describe, expect, it } from 'vitest';
import { findOperation } from '../../lambdas/connectors/registry.ts';
import type { Approval } from '../../lambdas/run/approval.ts';
import { approvalCard } from '../../lambdas/slack/card/approval-card.ts';
import { ACTION, approvalOf, NOW_MS, PEOPLE } from './approvals.ts';
import { buttonsOf, readable } from './shown-text.ts';

const operation = findOperation('agent.command');

/** The approval of a command, with the fields that its connector proposes. */
function commandApproval(input: object): Approval {
  if (!operation) throw new Error('there is no agent.command');
  const { target, fields } = operation.propose(operation.parse(input), '');
  const action = { ...ACTION, tool: 'agent.command', connector: 'agent', target, fields, effect: 'opaque' as const };
  const { before: _before, after: _after, ...approval } = approvalOf({ action });
  return approval;
}
const cardOf = (input: object) => approvalCard(commandApproval(input), PEOPLE, NOW_MS);
const textOf = (input: object) => readable(cardOf(input).blocks);

describe('the card of a command', () => {
  it('shows the program, each argument on its own, where it runs, and the rollback', () => {
    const text = textOf({
      ...{ command: '/usr/bin/systemctl', args: ['restart', 'web 1'], environment: 'prod', segment: 'vpc-a' },
      rollback: { command: '/usr/bin/systemctl', args: ['start', 'web 1'] },
    });
    expect(text).toContain('At agent:prod:vpc-a:/usr/bin/systemctl in prod');
    const shown = ['command: /usr/bin/systemctl', 'args.1: restart', 'args.2: web 1', 'environment: prod'];
    const where = ['profile: prod-standard', 'segment: vpc-a'];
    const undo = ['rollback.command: /usr/bin/systemctl', 'rollback.args.1: start', 'rollback.args.2: web 1'];
    for (const line of [...shown, ...where, ...undo]) expect(text).toContain(`• ${line}`);
  });

  it('shows hidden characters, line breaks and empty arguments, so that no argument imitates another one', () => {
    const text = textOf({
      ...{ command: '/usr/bin/systemctl', environment: 'dev' },
      args: ['stop\nargs.2: harmless', 'we\u202Eb', '', 'a b", "c'],
    });
    expect(text).toContain('args.2: we⟦U+202E⟧b');
    expect(text).toContain('args.3: ""');
    expect(text).toContain('args.4: a b", "c');
    // In a box of its own, under the label of its argument.
    expect(text).toContain('• args.1 will bestop\nargs.2: harmless');
  });

  it('cannot be edited: a changed command is another one', () => {
    const input = { command: '/usr/bin/uptime', environment: 'dev' };
    expect(textOf(input)).toContain('• args: []');
    expect(buttonsOf(cardOf(input).blocks)).not.toContain('Edit');
  });
});
