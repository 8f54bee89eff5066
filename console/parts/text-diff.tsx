import { structuredPatch } from 'diff';
import { UntrustedText } from './untrusted-text.tsx';

const CONTEXT_LINES = 3;
const LINE_MAX_CHARACTERS = 1_000;

interface Line {
  key: string;
  sign: '+' | '-' | ' ' | '…';
  text: string;
}

function linesOf(before: string, after: string): Line[] {
  const { hunks } = structuredPatch('', '', before, after, '', '', { context: CONTEXT_LINES });
  return hunks.flatMap(({ lines, oldStart }, index): Line[] => [
    ...(index > 0 || oldStart > 1 ? [{ key: `${index}`, sign: '…' as const, text: '' }] : []),
    ...lines
      .filter((line) => !line.startsWith('\\'))
      .map((line, at) => ({ key: `${index}.${at}`, sign: line.charAt(0) as Line['sign'], text: line.slice(1) })),
  ]);
}

const NAMES: Record<Line['sign'], string> = { '+': 'added', '-': 'removed', ' ': 'same', '…': 'skipped' };

/** The lines that differ between two texts, with some around them. */
export function TextDiff({ label, before, after }: { label: string; before: string; after: string }) {
  const lines = linesOf(before, after);
  if (lines.length === 0) return <p className="secondary">They are the same.</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard
    <section className="diff" aria-label={label} tabIndex={0}>
      {lines.map(({ key, sign, text }) => (
        <div key={key} className={`diff-${NAMES[sign]}`}>
          <span className="diff-sign">{sign}</span>
          <span className="visually-hidden">{sign === '+' || sign === '-' ? `${NAMES[sign]}: ` : ''}</span>
          <UntrustedText text={text} max={LINE_MAX_CHARACTERS} />
        </div>
      ))}
    </section>
  );
}
