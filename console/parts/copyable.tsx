import { useState } from 'react';
import { safeText, UntrustedText } from './untrusted-text.tsx';

const CONFIRMED_MS = 1_500;

/** An id, a hash or a command: whole, in a fixed-width font, with a button that copies it. */
export function Copyable({ text, label }: { text: string; label: string }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setIsCopied(true);
    setTimeout(() => setIsCopied(false), CONFIRMED_MS);
  };
  return (
    <span className="copyable">
      <code>
        <UntrustedText text={text} />
      </code>
      <button type="button" className="link-button" onClick={copy} aria-label={`Copy ${safeText(label)}`}>
        {isCopied ? 'Copied' : 'Copy'}
      </button>
    </span>
  );
}

/** The same action on the command line. */
export function CommandLine({ command }: { command: string }) {
  return <Copyable text={command} label="the command" />;
}
