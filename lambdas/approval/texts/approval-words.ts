import { type Approval, type ApprovalStatus, type GateReason, isOpen } from '../../run/approval.ts';
import type { SentencePart } from './missing-approvers.ts';

/** Texts about an approval that the card in Slack, the console and the command line share. */

/** The message of the workflow's author was written before any edit. */
export const messageLabel = ({ edits }: { edits: readonly unknown[] }): string =>
  edits.length === 0 ? 'Message' : 'Message, from before the edit';

/** Before the reason. */
export const UNREAD = 'The current values could not be read, so they are not shown: ';

export const unreadText = ({ unread }: Pick<Approval, 'unread'>): string | undefined =>
  unread === undefined ? undefined : `${UNREAD}${unread}`;

export const HEADINGS: Record<ApprovalStatus, string> = {
  requested: 'Approval needed',
  notified: 'Approval needed',
  approved: 'Approved',
  rejected: 'Rejected',
  expired: 'Expired without a decision',
  canceled: 'Canceled before a decision',
};

export const REASONS: Record<GateReason, string> = {
  policy: 'Policy requires approval by a person.',
  mode: 'The validation mode of this workflow requires approval before this step.',
  always_two: 'The write is destructive or has a high blast radius: two people must approve it.',
  tainted: 'A model’s output influences the target of this write.',
  step: 'The workflow waits here for approval.',
  approvers: 'The workflow says who must approve this step.',
  retry: 'An earlier attempt at this write failed: an operator decides whether it is sent again.',
};

export function undoText({ undo, reversible, destructive }: NonNullable<Approval['action']>): string {
  if (undo) return 'This undoes an earlier write.';
  if (destructive) return 'It removes something that cannot be restored.';
  return reversible ? 'It can be undone.' : 'It cannot be undone.';
}

/** Longer lists end with the number of the others. */
const LISTED_MAX = 6;

function listed(names: readonly string[], between: string): SentencePart[] {
  const more = names.length - LISTED_MAX;
  const named = names.slice(0, LISTED_MAX).flatMap((name, index) => (index === 0 ? [{ name }] : [between, { name }]));
  return more > 0 ? [...named, `${between}${more} more`] : named;
}

/** `Needs 2 people who may approve tier high, from dba or sre, and also from security.` */
export function requirementSentence(approval: Pick<Approval, 'requirement' | 'status'>): SentencePart[] {
  const { quorum, tier, groups, operators } = approval.requirement;
  const people = operators ? 'an operator, or one person' : quorum === 1 ? 'one person' : `${quorum} people`;
  const of = groups.flatMap((set, index) => [index === 0 ? ', from ' : ', and also from ', ...listed(set, ' or ')]);
  return [`${isOpen(approval) ? 'Needs' : 'Needed'} ${people} who may approve tier ${tier}`, ...of, '.'];
}

const HOW = { carried: 'fills', chosen: 'chooses' } as const;

/** `A model (step classify) chooses channel.` */
export const modelSentences = ({ derived = [] }: NonNullable<Approval['action']>): SentencePart[][] =>
  derived.map(({ field, how, from }) => [
    'A model ',
    '(step ',
    ...listed(from, ', '),
    ...(field === 'when' ? [') decides whether this step runs.'] : [`) ${HOW[how]} `, { name: field }, '.']),
  ]);

/** What happens if nobody decides. Silence is never an approval. */
export const WITHOUT_DECISION =
  'If nobody decides in time, nothing is written, and the step fails. The workflow’s onFailure says how the run continues.';
