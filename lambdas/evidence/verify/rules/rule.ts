import type { RunHistory } from './run-history.ts';

/** One place where a rule is broken. */
export interface Breach {
  /** `commit 7 (assign)`. */
  entry: string;
  problem: string;
}

/** A rule that every run follows. docs/evidence-format.md lists them. The number and the name of a rule never change. */
export interface Rule {
  number: number;
  name: string;
  /** One sentence, for the documentation. */
  description: string;
  /** Why a bundle cannot show whether the rule was followed; undefined if it can. */
  notCheckable?(history: RunHistory): string | undefined;
  /** Returns each place where the rule is broken. */
  check(history: RunHistory): Breach[];
}

export interface NamedRule {
  rule: number;
  name: string;
}

/** What a verifier says about the rules. */
export interface RulesReport {
  checked: NamedRule[];
  broken: (NamedRule & Breach)[];
  notCheckable: (NamedRule & { reason: string })[];
  /** The rules that the stage itself says were broken: an owner had the run sealed in spite of that. */
  sealedAsBroken?: number[];
}
