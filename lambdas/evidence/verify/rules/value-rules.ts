import { hashOf } from '../../../run/canonical-json.ts';
import { isRecord } from '../../../run/events/replay-state.ts';
import { termsAt } from './approval-history.ts';
import { attemptsWith } from './call-rules.ts';
import { breachAt, text, texts } from './event-fields.ts';
import type { Breach, Rule } from './rule.ts';
import type { PlacedEvent, RunHistory } from './run-history.ts';

const TIERS: readonly string[] = ['low', 'medium', 'high'];
/** The roles that may decide; those that may decide on any tier; those that control runs. */
const DECIDES: readonly string[] = ['owner', 'admin', 'approver'];
const ANY_TIER: readonly string[] = ['owner', 'admin'];
const CONTROLS: readonly string[] = ['owner', 'admin', 'operator'];

/** Decisions and votes of such a run have digests and rights. */
function notSalted({ events, document }: RunHistory): string | undefined {
  if (events.some(({ event }) => event.type === 'run.enriched' && event.salted === true)) return undefined;
  if (!events.some(({ event }) => event.type === 'policy.decided' || event.type === 'approval.voted')) return undefined;
  const isFirst = document.format === 'countersign.evidence/1';
  return isFirst ? 'bundles of format 1 do not contain what it needs' : 'an earlier version started the run';
}

/** Rules about values, by their digests, and about the rights of voters. */
export const VALUE_RULES: readonly Rule[] = [
  {
    number: 21,
    name: 'action-hash-is-that-of-the-action',
    description:
      'The `actionHash` of each decision is that of its action, its digests, its policy set and the workflow version of the run.',
    notCheckable: notSalted,
    check: ({ events, document: { run } }) =>
      events.flatMap((placed) => {
        const { event } = placed;
        if (event.type !== 'policy.decided') return [];
        const { tool, target, derived, action, fields, inputDigest: input, policyHash, actionHash } = event;
        const facts = { ...(isRecord(action) ? action : {}), tool, target, ...(derived !== undefined && { derived }) };
        const due = hashIfAny({ action: facts, fields, input, policyHash, workflow: run.workflow });
        return due === actionHash
          ? []
          : [breachAt(placed, 'has an action hash that is not that of its action and digests')];
      }),
  },
  {
    number: 22,
    name: 'decided-values-are-sent',
    description: 'The `requestHash` of each attempt is that of the digests of the fields on which policy decided last.',
    notCheckable: notSalted,
    check: (history) =>
      attemptsWith(history, ({ intended, decided }) =>
        decided && hashIfAny(decided.event.fields) === intended.event.requestHash
          ? undefined
          : 'sends other values than those on which policy decided',
      ),
  },
  {
    number: 23,
    name: 'voters-are-eligible',
    description:
      'The `rights` of each vote meet the terms: a role that decides, the tier, and a group of each list; if `operators` may decide, a role that controls runs suffices.',
    notCheckable: notSalted,
    check: ({ approvals }) =>
      [...approvals.values()].flatMap((approval) =>
        approval.votes.flatMap((vote) => ineligible(vote, termsAt(approval, vote.place))),
      ),
  },
];

/** An event of a hostile bundle may lack what is hashed. */
const hashIfAny = (value: unknown): string | undefined => (value === undefined ? undefined : hashOf(value));

function ineligible(vote: PlacedEvent, terms: ReturnType<typeof termsAt>): Breach[] {
  const rights = isRecord(vote.event.rights) ? vote.event.rights : {};
  const [role, tier, groups] = [text(rights.role), text(rights.tier), texts(rights.groups)];
  if (terms.operators && CONTROLS.includes(role)) return [];
  const who = text(vote.event.person);
  if (!DECIDES.includes(role)) return [breachAt(vote, `is a vote of ${who} with the role ${role || 'nobody'}`)];
  if (!ANY_TIER.includes(role) && !(TIERS.indexOf(tier) >= TIERS.indexOf(terms.tier))) {
    return [breachAt(vote, `is a vote of ${who} with the tier ${tier}; ${terms.tier} is required`)];
  }
  const isMember = terms.groups.every((set) => set.some((group) => groups.includes(group)));
  return isMember ? [] : [breachAt(vote, `is a vote of ${who}, who is not in the groups that are required`)];
}
