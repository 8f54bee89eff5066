import { nameOf } from '../../../lambdas/approval/texts/known-names.ts';
import type { Names } from '../../../lambdas/connectors/connector.ts';
import type { ApprovalStatus, GateReason, Vote } from '../../../lambdas/run/approval.ts';
import { viaText } from '../../../lambdas/run/approval.ts';
import { escapeHidden } from '../../../lambdas/slack/escape-hidden-characters.ts';
import type { DerivedTarget } from '../../../lambdas/workflow/model-flow.ts';
import type { ShownApproval } from '../../client/api-client.ts';
import type { TonedText } from '../../terminal/table.ts';
import type { Tone } from '../../terminal/terminal.ts';
import { clockNear } from '../../terminal/times.ts';

const TONES: Record<ApprovalStatus, Tone> = {
  requested: 'waiting',
  notified: 'waiting',
  approved: 'good',
  rejected: 'bad',
  expired: 'bad',
  canceled: 'quiet',
};

/** `requested` and `notified` only differ in whether the Slack card was posted. */
export const approvalCell = ({ status }: Pick<ShownApproval, 'status'>): TonedText => ({
  text: status === 'requested' || status === 'notified' ? 'waiting' : status,
  tone: TONES[status],
});

export const GATE_REASONS: Record<GateReason, string> = {
  policy: 'required by policy',
  mode: "required by the workflow's validation mode",
  always_two: 'two people must approve a destructive write or one with high blast radius',
  tainted: 'a model influences the target',
  step: 'required by the workflow',
  approvers: 'the workflow says who must approve this step',
  retry: 'an operator must agree before a write with this blast radius is sent again',
};

/** Policy's reasons are shown only if policy requires the approval. */
export function approvalReason({ asks, grounds }: ShownApproval): string {
  if (asks !== 'policy') return GATE_REASONS[asks];
  const reasons = grounds.reasons.join('; ');
  const policies = grounds.policies.length > 0 ? ` (${grounds.policies.join(', ')})` : '';
  return `${GATE_REASONS[asks]}: ${reasons}${policies}`;
}

/** `a model (classify) chooses channel`, for each target field that derives from a model. */
export const derivedText = (derived: readonly DerivedTarget[] = []): string[] =>
  derived.map(({ field, how, from }) => {
    const does =
      field === 'when'
        ? 'decides whether this write is made'
        : how === 'carried'
          ? `fills ${field}`
          : `chooses ${field}`;
    return `a model (${from.join(', ')}) ${does}`;
  });

/** `ana rejected in slack, 09:12:44.120: "wrong host"`. */
export function voteText({ person, via, decision, onBehalfOf, at, reason }: Vote, near: string): string {
  const behalf = onBehalfOf === undefined ? '' : ` on behalf of ${onBehalfOf}`;
  const why = reason === undefined ? '' : `: ${exact(reason)}`;
  return `${person} ${decision === 'approve' ? 'approved' : 'rejected'} ${viaText(via)}${behalf}, ${clockNear(at, near)}${why}`;
}

/** A value as JSON, with invisible characters escaped. */
export const exact = (value: unknown): string =>
  value === undefined ? 'not set' : escapeHidden(JSON.stringify(value));

/** The same without quotes, for names and targets. */
export const exactName = (text: string): string => exact(text).slice(1, -1);

export const changeText = (name: string, from: unknown, to: unknown, names?: Names): string =>
  `~ ${exactName(name)}: ${named(names, name, from)} → ${named(names, name, to)}`;

/** `Database ("287ebd7d…")`: the name for people, then the exact value. */
export function named(names: Names | undefined, field: string, value: unknown): string {
  const name = nameOf(names, field, value);
  return name === undefined ? exact(value) : `${exactName(name)} (${exact(value)})`;
}
