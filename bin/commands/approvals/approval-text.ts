import type { ApprovalStatus, GateReason, Vote } from '../../../lambdas/run/approval.ts';
import { revealed } from '../../../lambdas/slack/escape-hidden-characters.ts';
import type { DerivedTarget } from '../../../lambdas/workflow/model-flow.ts';
import type { ShownApproval } from '../../client/api-client.ts';
import type { Cell } from '../../terminal/table.ts';
import type { Tone } from '../../terminal/terminal.ts';
import { clockNear } from '../../terminal/times.ts';
import { viaInWords } from '../runs/run-text.ts';

const TONES: Record<ApprovalStatus, Tone> = {
  requested: 'waiting',
  notified: 'waiting',
  approved: 'good',
  rejected: 'bad',
  expired: 'bad',
  canceled: 'quiet',
};

/** Whether its card is posted yet makes no difference to whoever decides. */
export function approvalCell({ status }: Pick<ShownApproval, 'status'>): Cell {
  return { text: status === 'requested' || status === 'notified' ? 'waiting' : status, tone: TONES[status] };
}

const WHO_ASKS: Record<GateReason, string> = {
  policy: 'policy asks',
  mode: 'the validation mode of the workflow asks',
  always_two: 'what hits much or is destructive always needs two',
  tainted: 'a model has a part in where this goes',
  step: 'the workflow asks',
  retry: 'a write with this blast radius is sent again only if an operator agrees',
};

/** Policy's reasons are why people are asked only where policy asks. */
export function askedBecause({ asks, grounds }: ShownApproval): string {
  if (asks !== 'policy') return WHO_ASKS[asks];
  const reasons = grounds.reasons.join('; ');
  const policies = grounds.policies.length > 0 ? ` (${grounds.policies.join(', ')})` : '';
  return `${WHO_ASKS[asks]}: ${reasons}${policies}`;
}

/** `a model (classify) chooses channel`, for each part of the target that derives from one. */
export const derivedInWords = (derived: readonly DerivedTarget[] = []): string[] =>
  derived.map(({ field, how, from }) => {
    const does =
      field === 'when' ? 'decides whether this is done' : how === 'carried' ? `fills ${field}` : `chooses ${field}`;
    return `a model (${from.join(', ')}) ${does}`;
  });

/** `ana approved in slack, 09:12:44.120`, with the reason of a no. */
export function voteInWords({ person, via, decision, onBehalfOf, at, reason }: Vote, near: string): string {
  const place = onBehalfOf === undefined ? '' : ` in place of ${onBehalfOf}`;
  const why = reason === undefined ? '' : `: ${exact(reason)}`;
  return `${person} ${decision === 'approve' ? 'approved' : 'rejected'} ${viaInWords(via)}${place}, ${clockNear(at, near)}${why}`;
}

/** A value as it is and nothing else: in quotes if it is text, with whatever cannot be seen written out. */
export const exact = (value: unknown): string => (value === undefined ? 'not set' : revealed(JSON.stringify(value)));

/** A name or place among our own words: the same without the quotes. */
export const exactName = (text: string): string => exact(text).slice(1, -1);

export const changeInWords = (name: string, from: unknown, to: unknown): string =>
  `~ ${exactName(name)}: ${exact(from)} → ${exact(to)}`;
