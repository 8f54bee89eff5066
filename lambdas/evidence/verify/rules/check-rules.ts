import type { EvidenceDocument } from '../../bundle/document.ts';
import { APPROVAL_RULES } from './approval-rules.ts';
import { CALL_RULES } from './call-rules.ts';
import { ORDER_RULES } from './order-rules.ts';
import type { Rule, RulesReport } from './rule.ts';
import { runHistory } from './run-history.ts';
import { UNDO_RULES } from './undo-rules.ts';
import { VALUE_RULES } from './value-rules.ts';
import { VOTE_RULES } from './vote-rules.ts';

/** All rules, by number. */
export const RULES: readonly Rule[] = [
  ...[...CALL_RULES, ...APPROVAL_RULES, ...VOTE_RULES, ...UNDO_RULES, ...ORDER_RULES, ...VALUE_RULES],
].sort((a, b) => a.number - b.number);

/** Checks the rules on a document whose entries agree with its commits. */
export function checkRules(document: EvidenceDocument): RulesReport {
  const history = runHistory(document);
  const report: RulesReport = { checked: [], broken: [], notCheckable: [] };
  for (const { number: rule, name, notCheckable, check } of RULES) {
    const reason = notCheckable?.(history);
    if (reason === undefined) {
      report.checked.push({ rule, name });
      // Not spread into arguments: a hostile bundle may break a rule more often than the stack has room for.
      for (const breach of check(history)) report.broken.push({ rule, name, ...breach });
    } else report.notCheckable.push({ rule, name, reason });
  }
  return report;
}
