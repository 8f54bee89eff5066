import { hashOf } from '../run/canonical-json.ts';
import { fieldDigests, saltedDigest } from '../run/digest.ts';
import type { ProposedAction } from './policy.ts';

/**
 * What an action hash is made of, without values: evidence contains it, so that anybody can compute the hash again. The
 * salt of the run prevents that short values are guessed from their digests.
 */
export interface ActionDigests {
  /** All facts of the action but its fields and makers. */
  facts: Omit<ProposedAction, 'fields' | 'makers'>;
  /** By name of the field. */
  fields: Record<string, string>;
  input: string;
}

export function actionDigests(
  { makers: _ignored, fields, ...facts }: ProposedAction,
  input: unknown,
  salt: string,
): ActionDigests {
  return {
    facts: JSON.parse(JSON.stringify(facts)),
    fields: fieldDigests(salt, fields),
    input: saltedDigest(salt, input),
  };
}

/**
 * Identifies what an approval covers: the action, its complete input, the policies and the workflow version. The makers are
 * not part of it: they do not change what is written.
 */
export function actionHash(
  action: ProposedAction,
  input: unknown,
  policyHash: string,
  workflow: { name: string; version: number },
  salt?: string,
): string {
  if (salt === undefined) {
    const { makers: _ignored, ...facts } = action;
    return hashOf({ action: facts, input, policyHash, workflow });
  }
  return hashOfDigests(actionDigests(action, input, salt), policyHash, workflow);
}

/** The action hash in a run that has a salt, from what it is made of. */
export function hashOfDigests(
  { facts, ...digests }: ActionDigests,
  policyHash: string,
  workflow: { name: string; version: number },
): string {
  return hashOf({
    action: facts,
    ...digests,
    policyHash,
    workflow: { name: workflow.name, version: workflow.version },
  });
}
