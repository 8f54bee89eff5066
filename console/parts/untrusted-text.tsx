import { Fragment, type ReactNode, useState } from 'react';
import { escapeAndCut } from '../../lambdas/slack/escape-hidden-characters.ts';

interface UntrustedTextProps {
  /** Text of people, programs and external systems: titles, names, values, output, error messages. */
  text: string;
  /** More is cut, and can be shown. */
  max?: number;
  lines?: 'one' | 'many';
  /** For names in columns: lines break at spaces and hyphens and after `/` and `_`, elsewhere only if one part is too long. */
  isName?: boolean;
}

const MAX_DEFAULT = 300;

/**
 * The only way in which the console shows text that it did not write. HTML stays text (React escapes it); characters that
 * are invisible or reorder their neighbours are written out; direction cannot leave the element; long text is cut.
 */
export function UntrustedText({ text, max = MAX_DEFAULT, lines = 'one', isName = false }: UntrustedTextProps) {
  const [isWhole, setIsWhole] = useState(false);
  const { shown, hidden } = escapeAndCut(String(text), isWhole ? Number.POSITIVE_INFINITY : max, lines);
  return (
    <>
      <bdi className={isName ? 'name' : lines === 'many' ? 'untrusted untrusted-lines' : 'untrusted'}>
        {isName ? breakable(shown) : shown}
      </bdi>
      {hidden > 0 && (
        <button type="button" className="link-button" onClick={() => setIsWhole(true)}>
          … show {hidden.toLocaleString('en-US')} more characters
        </button>
      )}
    </>
  );
}

/** Where a line may break. A copy of the text does not contain the breaks. */
const breakable = (text: string): ReactNode =>
  text.split(/(?<=[/_])/).map((part, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: parts do not move
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ));

/** For attributes and places that take plain text only, e.g. labels and the title of the tab. */
export const safeText = (text: string, max = MAX_DEFAULT): string => {
  const { shown, hidden } = escapeAndCut(text, max, 'one');
  return hidden > 0 ? `${shown}…` : shown;
};
