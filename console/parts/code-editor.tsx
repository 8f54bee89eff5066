import { useId, useRef } from 'react';
import { UntrustedText } from './untrusted-text.tsx';

export interface LineProblem {
  line: number;
  message: string;
}

interface CodeEditorProps {
  label: string;
  value: string;
  onChange(value: string): void;
  problems: readonly LineProblem[];
  /** Says whether the text is valid, or why that is not known. */
  state: string;
  rows?: number;
}

/** A text field with line numbers, and the problems of its lines. */
export function CodeEditor({ label, value, onChange, problems, state, rows = 28 }: CodeEditorProps) {
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const numbers = useRef<HTMLPreElement>(null);
  const lines = value.split('\n');
  const wrong = new Set(problems.map(({ line }) => line));
  const show = (line: number) => {
    const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    field.current?.focus();
    field.current?.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <div className="code-editor">
        <pre ref={numbers} aria-hidden="true">
          {lines.map((_, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a line has no other identity than its number
            <span key={index} className={wrong.has(index + 1) ? 'wrong-line' : undefined}>
              {index + 1}
              {'\n'}
            </span>
          ))}
        </pre>
        <textarea
          id={id}
          ref={field}
          className="mono"
          wrap="off"
          rows={rows}
          spellCheck={false}
          autoCapitalize="off"
          autoComplete="off"
          aria-describedby={`${id}-state`}
          {...(problems.length > 0 && { 'aria-invalid': true })}
          value={value}
          onChange={({ target }) => onChange(target.value)}
          onScroll={({ currentTarget }) => {
            if (numbers.current) numbers.current.scrollTop = currentTarget.scrollTop;
          }}
        />
      </div>
      <p id={`${id}-state`} className="code-state" role="status">
        {state}
      </p>
      {problems.length > 0 && (
        <ul className="plain-list">
          {problems.map(({ line, message }) => (
            <li key={`${line} ${message}`}>
              <button type="button" className="link-button" onClick={() => show(line)}>
                Line {line}
              </button>
              : <UntrustedText text={message} max={600} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
