import { join, relative } from 'node:path';
import { type PolicyDecision, whyOf } from '../../../lambdas/policy/policy.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import { POLICIES_OPTION, readPolicyFolder } from './policy-folder.ts';
import { outcomeText } from './replay.ts';
import type { TriedFileCase } from './test-cases.ts';

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

export const policyTest: Command = {
  name: 'policy test',
  args: ['[FILE]'],
  description: 'test policies with cases from a file, offline',
  details:
    'FILE is a YAML file with cases, or a folder of such files (default: policies/tests):\n' +
    '  - name: closing an incident takes two people\n' +
    '    request: { tool: servicenow.incident.update, fields: { state: "7" }, environment: prod }\n' +
    '    expect: { verdict: needs_approval, tier: high, quorum: 2, groups: [network] }\n' +
    'expect may also be just allow, deny or needs_approval. Missing fields of a request default to the\n' +
    'values of the tool, or to low risk. policies/README.md lists all fields.',
  offline: true,
  options: POLICIES_OPTION,
  async run(call) {
    // Loaded here: the policy engines would slow down the start of every other command.
    const { checkPolicies } = await import('../../../lambdas/policy/check-policies.ts');
    const { wirePolicyEngines, wirePolicy } = await import('../../../lambdas/policy/policy.wiring.ts');
    const { toolNames } = await import('../../../lambdas/connectors/registry.ts');
    const { shippedFolder } = await import('../../../lambdas/policy/shipped-policies.ts');
    const { tryCaseFiles } = await import('./test-cases.ts');

    const policies = readPolicyFolder(call.option('policies'));
    const engines = wirePolicyEngines();
    const checked = await checkPolicies(engines, policies, toolNames());
    if ('problems' in checked) {
      for (const problem of checked.problems) call.terminal.note(printable(problem));
      return EXIT.failed;
    }
    const policy = wirePolicy({ policies: async () => policies }, { engines, log: SILENT });
    return report(call, checked.hash, await tryCaseFiles(call.arg(0) || join(shippedFolder(), 'tests'), policy));
  },
};

function report(call: Call, hash: string, tried: readonly TriedFileCase[]): ExitCode {
  const failed = tried.filter(({ wrong }) => wrong.length > 0);
  if (call.json) call.printJson({ hash, cases: tried });
  else printCases(call, tried, failed.length);
  return failed.length > 0 ? EXIT.failed : EXIT.ok;
}

function printCases({ terminal }: Call, tried: readonly TriedFileCase[], failed: number): void {
  let file = '';
  for (const each of tried) {
    if (each.file !== file) terminal.print(terminal.paint('strong', relative(process.cwd(), each.file) || each.file));
    file = each.file;
    const mark = each.wrong.length > 0 ? terminal.paint('bad', 'FAIL') : terminal.paint('good', 'ok  ');
    terminal.print(`  ${mark}  ${printable(each.name)}`);
    if (each.wrong.length > 0) terminal.print(`        ${printable(each.wrong.join(', '))}; got:`);
    terminal.print(terminal.paint('quiet', `        ${printable(decisionText(each.decision))}`));
  }
  terminal.print(`${tried.length} cases, ${failed === 0 ? 'all passed' : `${failed} failed`}`);
}

/** `allow by low-risk-writes: a low-risk write needs no approval` */
function decisionText(decision: PolicyDecision): string {
  const by = decision.policies.length > 0 ? ` by ${decision.policies.join(', ')}` : '';
  return `${outcomeText(decision)}${by}: ${whyOf(decision)}`;
}
