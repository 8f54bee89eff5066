import { existsSync } from 'node:fs';
import type { ChangeLog } from '../../../lambdas/evidence/change-log/change-log.ts';
import type { RulesReport } from '../../../lambdas/evidence/verify/rules/rule.ts';
import {
  type HeldBundle,
  type Summary,
  type Verdict,
  verifyBundle,
} from '../../../lambdas/evidence/verify/verify-bundle.ts';
import {
  type CheckedValues,
  checkChangeValues,
  isChangeLog,
  readChangeLog,
} from '../../../lambdas/evidence/verify/verify-change-log.ts';
import { counted } from '../../terminal/counted.ts';
import { printable, type Tone } from '../../terminal/terminal.ts';
import type { Call } from '../command.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import { readFile } from '../read-file.ts';
import { readBundle } from './bundle-file.ts';
import { valuesFile } from './bundle-names.ts';
import { decisionsAgain, exitOf, printDecisions } from './decisions-again.ts';

export async function verifyEvidence(call: Call): Promise<ExitCode> {
  const bundle = readBundle(call);
  if (isChangeLog(bundle.document)) return verifyChanges(call, bundle);
  const verdict = verifyBundle(bundle);
  const texts = call.option('with-texts');
  const decisions =
    texts !== undefined && 'summary' in verdict ? await decisionsAgain(call, bundle.document, texts) : undefined;
  if (call.json) call.printJson({ ...verdict, ...(decisions && { decisions }) });
  else {
    printVerdict(printable(verdict), call);
    if (decisions) printDecisions(printable(decisions), call);
  }
  return EXIT_OF[verdict.verdict] || (decisions ? exitOf(decisions) : EXIT.ok);
}

function verifyChanges(call: Call, { document, envelope, keys }: HeldBundle): ExitCode {
  const { file, problem: ofSignature } = readChangeLog({ document, envelope }, keys);
  const values = file && heldValues(call, file);
  const isUnproven = ofSignature !== undefined && keys.length === 0 && file !== undefined;
  const problem = values?.problem ?? (isUnproven ? undefined : ofSignature);
  const verdict = problem !== undefined ? 'tampered' : isUnproven ? 'unproven' : 'valid';
  const counts = values && { values: { proven: values.proven, unproven: values.unproven } };
  const summary = file && { tenant: file.tenant, day: file.day, changes: file.changes.length, ...counts };
  if (call.json) call.printJson({ verdict, ...(verdict === 'tampered' && { problem }), summary });
  else {
    const name = summary && `${summary.tenant}, ${counted(summary.changes, 'change')} of ${summary.day}`;
    const tone = { valid: 'good', unproven: 'waiting', tampered: 'bad' } as const;
    const text = printable(verdict === 'tampered' ? problem : name);
    call.terminal.print(`${call.terminal.paint(tone[verdict], verdict)}: ${text}`);
    if (verdict !== 'tampered') call.terminal.print(valuesText(values));
    if (isUnproven) call.terminal.note('\nThe signature was not checked. Pass the public key of the stage with --key.');
  }
  return EXIT_OF[verdict];
}

function heldValues(call: Call, file: ChangeLog): CheckedValues | undefined {
  const path = valuesFile(call.arg(0));
  return existsSync(path) ? checkChangeValues(file, readFile(path)) : undefined;
}

function valuesText(values: CheckedValues | undefined): string {
  if (!values) return '  values    none here; countersign changes export writes them beside the file';
  const { proven, unproven } = values;
  const rest = unproven === 0 ? '' : `; ${unproven} deleted, or without a digest`;
  return `  values    ${counted(proven, 'change')} as signed${rest}`;
}

const EXIT_OF: Record<Verdict['verdict'], ExitCode> = {
  valid: EXIT.ok,
  rules_broken: EXIT.rulesBroken,
  tampered: EXIT.failed,
  unreadable: EXIT.usage,
  unproven: EXIT.usage,
};

function printVerdict(verdict: Verdict, { terminal }: Call): void {
  const headline = (tone: Tone, text: string) =>
    terminal.print(`${terminal.paint(tone, verdict.verdict.replace('_', ' '))}: ${text}`);
  switch (verdict.verdict) {
    case 'tampered':
      headline('bad', `${verdict.entry} ${verdict.problem}`);
      return;
    case 'unreadable':
      headline('bad', verdict.problem);
      return;
    case 'unproven':
      headline('waiting', nameOf(verdict.summary));
      printSummary(verdict.summary, terminal.print);
      printRules(verdict.rules, terminal);
      terminal.note(
        '\nThe bundle is consistent, but its signature was not checked. Pass the public key of the stage with --key.',
      );
      return;
    case 'valid':
    case 'rules_broken':
      headline(verdict.verdict === 'valid' ? 'good' : 'bad', nameOf(verdict.summary));
      printSummary(verdict.summary, terminal.print);
      terminal.print(`  key       ${verdict.signedBy.algorithm}, sha256 ${verdict.signedBy.fingerprint}`);
      terminal.print('  intact    yes: nothing was changed since it was sealed');
      printRules(verdict.rules, terminal);
  }
}

/** Each broken rule with its entry, then what the bundle cannot show. */
function printRules(
  { checked, broken, notCheckable, sealedAsBroken }: RulesReport,
  { print, paint }: Call['terminal'],
): void {
  const brokenRules = new Set(broken.map(({ rule }) => rule)).size;
  const result = brokenRules === 0 ? paint('good', 'followed') : paint('bad', `${brokenRules} broken`);
  print(`  rules     ${result} (${counted(checked.length, 'rule')} checked)`);
  if (sealedAsBroken)
    print(
      `    the stage sealed it as one that broke rules ${sealedAsBroken.join(', ')}; its addenda say who accepted that`,
    );
  for (const { rule, name, entry, problem } of broken) print(`    rule ${rule}, ${name}: ${entry} ${problem}`);
  for (const { rule, name, reason } of notCheckable) print(`    rule ${rule}, ${name}: not checkable: ${reason}`);
}

const nameOf = ({ tenant, runId, status }: Summary) => `${tenant}/${runId}, ${status}`;

function printSummary(summary: Summary, print: (line: string) => void): void {
  const { sha256, commits, head, keyId } = summary;
  const counts = (['step', 'decision', 'approval', 'receipt'] as const).map((what) =>
    counted(summary[`${what}s`], what),
  );
  print(`  document  sha256 ${sha256}`);
  print(`  chain     ${counted(commits, 'commit')} to ${head}`);
  print(`  contains  ${counts.join(', ')}`);
  if (summary.addenda > 0)
    print(`  then      ${counted(summary.addenda, 'addendum', 'addenda')}, up to commit ${commits + summary.addenda}`);
  print(`  signed    as ${keyId}`);
}
