import { tryParseJsonBytes } from '../../../lambdas/entry/parse-json.ts';
import { VALUES_FORMAT } from '../../../lambdas/evidence/export/values.ts';
import { type EvidenceValues, type OpenedValues, openValues } from '../../../lambdas/evidence/verify/open-values.ts';
import { counted } from '../../terminal/counted.ts';
import { table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call } from '../command.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import { readFile } from '../read-file.ts';
import { readEvidence, unreadable } from './bundle-file.ts';
import { valuesFile } from './bundle-names.ts';

/** Shows the values behind the digests of a bundle, each only if it has its digest. */
export function openEvidence(call: Call): ExitCode {
  const { document, verdict } = readEvidence(call);
  const file = call.option('values') ?? valuesFile(call.arg(0));
  const values = readValues(file, document.run);
  const opened = openValues(document, values);
  if (call.json) call.printJson({ verdict: verdict.verdict, ...opened });
  else print(printable(opened), call);
  return opened.different.length > 0 ? EXIT.failed : EXIT.ok;
}

/** Fails if the file has the values of another run. */
export function readValues(file: string, { tenant, runId }: { tenant: string; runId: string }): EvidenceValues {
  const values = withoutInfinity(tryParseJsonBytes(readFile(file)));
  if (values?.format !== VALUES_FORMAT) {
    throw unreadable(
      `${file} has no values of evidence; expected format ${VALUES_FORMAT}, as evidence get --values writes`,
    );
  }
  if (values.tenant === tenant && values.runId === runId) return values;
  throw unreadable(`${file} has the values of ${values.tenant}/${values.runId}; the bundle is of ${tenant}/${runId}`);
}

/** A number beyond the range of a double has no hash. In a file that somebody edited it becomes null, which differs. */
const withoutInfinity = (values: unknown): (EvidenceValues & { format?: unknown }) | undefined =>
  values === undefined ? undefined : JSON.parse(JSON.stringify(values));

function print({ proven, different, missing }: OpenedValues, { terminal }: Call): void {
  const rows = proven.map(({ path, value }) => [path, typeof value === 'string' ? value : JSON.stringify(value)]);
  const columns = [{ title: 'PLACE' }, { title: 'VALUE', shrink: 'wrap' as const }];
  for (const line of table(columns, rows, terminal)) terminal.print(line);
  for (const path of different) {
    terminal.print(`${terminal.paint('strong', path)}  ${terminal.paint('bad', 'is not the value in the bundle')}`);
  }
  const result =
    different.length === 0
      ? terminal.paint('good', `${counted(proven.length, 'value')} as in the bundle`)
      : terminal.paint('bad', `${counted(different.length, 'value')} differ from the bundle`);
  const rest = missing.length === 0 ? '' : `; ${counted(missing.length, 'digest')} without a value here`;
  terminal.print(`\n${result}${rest}`);
}
