import Alert from '@cloudscape-design/components/alert';
import { Section } from '../parts/section.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import type { Verified } from './verifier.ts';

/** What a verification found: whether the bundle is intact, whether the run followed the rules, and what it did. */
export function Report({ name, verified: { verdict, text } }: { name: string; verified: Verified }) {
  return (
    <div className="report">
      <Results name={name} verdict={verdict} />
      {text && (
        <>
          <h2>
            <UntrustedText text={text.heading} />
          </h2>
          <table className="grid report-facts">
            <tbody>
              {text.facts.map(([fact, value]) => (
                <tr key={fact}>
                  <th scope="row">{fact}</th>
                  <td>
                    <UntrustedText text={value} max={2_000} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {text.sections.map((section) => (
            <ReportSection key={section.title} section={section} />
          ))}
        </>
      )}
    </div>
  );
}

type Verdict = Verified['verdict'];

function Results({ name, verdict }: { name: string; verdict: Verdict }) {
  if (verdict.verdict === 'unreadable') {
    return (
      <Alert type="error" header="This cannot be verified">
        <UntrustedText text={`${name}: ${verdict.problem}`} max={1_000} />
      </Alert>
    );
  }
  if (verdict.verdict === 'tampered') {
    return (
      <Alert type="error" header="Tampered with: the bundle is not what was signed">
        <UntrustedText text={`${verdict.entry} ${verdict.problem}`} max={1_000} />. Nothing in the file is reliable, so
        it is not shown.
      </Alert>
    );
  }
  const { checked, broken, notCheckable, sealedAsBroken } = verdict.rules;
  const isProven = verdict.verdict !== 'unproven';
  return (
    <Alert
      type={!isProven ? 'warning' : broken.length > 0 ? 'error' : 'success'}
      header={headline(isProven, broken.length > 0)}
    >
      <ul className="plain-list">
        <li>
          <strong>{isProven ? 'Intact' : 'Not proven'}</strong>:{' '}
          {isProven
            ? 'nothing was changed, dropped, reordered or cut off since it was signed.'
            : 'the file is consistent, but no key was given to check its signature: anybody could have made it.'}
        </li>
        <li>
          <strong>{broken.length > 0 ? 'Rules broken' : 'Rules followed'}</strong>: {checked.length} rules were checked,{' '}
          {broken.length === 0 ? 'none was broken' : `${broken.length} broken`}
          {notCheckable.length > 0 && `; ${notCheckable.length} cannot be checked with this bundle`}
          {sealedAsBroken && '. An owner had the run sealed although it broke rules'}.
        </li>
      </ul>
    </Alert>
  );
}

function headline(isProven: boolean, isBroken: boolean): string {
  if (!isProven) return 'Consistent, but not proven';
  return isBroken ? 'Intact, but the run broke a rule' : 'Intact, and the run followed the rules';
}

/** Words and numbers, which must not be broken. */
const isShort = (text: string): boolean => text.length <= 16;

type TextSection = NonNullable<Verified['text']>['sections'][number];

function ReportSection({ section: { title, columns, rows } }: { section: TextSection }) {
  return (
    <Section title={title}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard */}
      <div className="scroll-x" tabIndex={0}>
        <table className="grid">
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: rows of a file never change
              <tr key={index}>
                {row.map((cell, at) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: cells of a file never change
                  <td key={at} className={[cell].flat().every(isShort) ? 'short' : undefined}>
                    {[cell].flat().map((line, number) => (
                      // biome-ignore lint/suspicious/noArrayIndexKey: lines of a file never change
                      <div key={number}>
                        <UntrustedText text={line} max={2_000} />
                      </div>
                    ))}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}
