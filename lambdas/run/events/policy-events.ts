import * as z from 'zod';
import { Count, Derived, eventKind, Hash, Id, Ids, ofStep, RiskTier, Sentence } from './event-kind.ts';
import { stepOf } from './replay-state.ts';

export const POLICY_EVENTS = {
  'policy.decided': eventKind({
    summary: 'Policy decided on a proposed write.',
    fields: z.strictObject({
      ...ofStep,
      tool: Id,
      target: Id,
      verdict: z.enum(['allow', 'needs_approval', 'deny']),
      policyHash: Hash,
      policies: Ids,
      /** Texts of the policies themselves, which are no secret. */
      reasons: z.array(z.string()),
      /** Why policy could not decide. */
      message: Sentence.optional(),
      actionHash: Hash,
      derived: z.array(Derived).optional(),
      tier: RiskTier.optional(),
      quorum: Count.optional(),
      groups: z.array(Ids).optional(),
    }),
    text: ({ step, verdict, message, reasons }) => {
      const why = message ?? reasons.join('; ');
      return `${step}: policy ${VERDICT_TEXT[verdict]}${why && `: ${why}`}`;
    },
    tone: ({ verdict }) => (verdict === 'deny' ? 'bad' : undefined),
    siem: ({ verdict }) =>
      verdict === 'deny' ? { severity: 'medium', failed: true } : { severity: 'informational', failed: false },
    replay: (replay, event) => {
      const step = stepOf(replay, event);
      Object.assign(step, { decided: event, claim: undefined });
      step.fields.tool = event.tool;
    },
    proves: { step: '`tool`; ends the claim' },
  }),
};

const VERDICT_TEXT = { allow: 'allows it', needs_approval: 'requires approval', deny: 'denies it' };
