import * as z from 'zod';
import { Count, Derived, eventKind, Hash, Id, Ids, ofStep, RiskTier, Sentence } from './event-kind.ts';
import { stepOf } from './replay-state.ts';

/** The facts of a proposed action, besides its tool, target and derived parts. */
const Action = z.strictObject({
  connector: Id,
  instance: Id,
  effect: Id,
  risk: Id,
  blastRadius: Id,
  environment: Id,
  destructive: z.boolean(),
  reversible: z.boolean(),
  undo: z.boolean(),
});
export type DecidedAction = z.infer<typeof Action>;

export const POLICY_EVENTS = {
  'policy.decided': eventKind({
    summary: 'Policy decided on a proposed call.',
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
      action: Action.optional(),
      /** The salted digest of each value that the call writes, by name; and of its whole input. */
      fields: z.record(z.string(), Hash).optional(),
      inputDigest: Hash.optional(),
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
