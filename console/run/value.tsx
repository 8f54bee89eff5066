import { UntrustedText } from '../parts/untrusted-text.tsx';

const SHOWN_MAX_CHARACTERS = 4_000;

/** A JSON value, folded or not. Text stays text. */
export function Value({ label, value, isOpen = true }: { label: string; value: unknown; isOpen?: boolean }) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'nothing');
  return (
    <details open={isOpen} className="folded">
      <summary>{label}</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long value scrolls, also with the keyboard */}
      <pre className="value" tabIndex={0}>
        <UntrustedText text={text} lines="many" max={SHOWN_MAX_CHARACTERS} />
      </pre>
    </details>
  );
}
