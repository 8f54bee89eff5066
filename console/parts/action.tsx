import Alert from '@cloudscape-design/components/alert';
import Button from '@cloudscape-design/components/button';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useId, useRef, useState } from 'react';
import type { Right } from '../../lambdas/people/rights.ts';
import { problemText } from '../data/api.ts';
import { CommandLine } from './copyable.tsx';
import { useDraft } from './draft.ts';
import { TextField } from './form.tsx';
import { notifyOnNextPage } from './next-page.ts';
import { safeText, UntrustedText } from './untrusted-text.tsx';
import { useWhyNot } from './why-not.ts';

interface ActionProps {
  /** Names the effect: `Drain the agent`. */
  label: string;
  /** What will happen, and what will not. */
  effect: ReactNode;
  right?: Right;
  /** Why it is not possible now, though the person has the right. */
  disabledReason?: string | undefined;
  /** The same action on the command line. */
  command: (reason: string) => string;
  /** Asks for a text, which `run` gets. */
  reason?: { label: string; required: boolean };
  variant?: 'primary' | 'normal';
  /** What the button of the dialog says; by default the label. Buttons in rows of a list have a short label. */
  confirm?: string;
  /** What it concerns, for screen readers: several buttons have the same label. */
  about?: string;
  /** Does it, and returns what was done. */
  run(reason: string): Promise<string>;
}

/** A button that first says in a dialog what it will do, also as a command line, and then does it. */
export function Action({ label, right, disabledReason, variant = 'normal', about, ...dialogProps }: ActionProps) {
  const [isOpen, setIsOpen] = useState(false);
  const whyNot = useWhyNot(right) ?? disabledReason;
  return (
    <>
      <Button
        variant={variant}
        disabled={whyNot !== undefined}
        {...(whyNot !== undefined && { disabledReason: safeText(whyNot) })}
        {...(about !== undefined && { ariaLabel: `${label}: ${safeText(about)}` })}
        onClick={() => setIsOpen(true)}
      >
        {label}
      </Button>
      {isOpen && <ActionDialog {...dialogProps} {...{ label, about }} onClose={() => setIsOpen(false)} />}
    </>
  );
}

type DialogProps = Pick<ActionProps, 'label' | 'about' | 'effect' | 'command' | 'reason' | 'confirm' | 'run'> & {
  onClose(): void;
};

function ActionDialog({ label, about, effect, command, reason, confirm = label, run, onClose }: DialogProps) {
  const queries = useQueryClient();
  const title = useId();
  const [text, setText, clear] = useDraft(`action.${location.pathname}.${label}.${about ?? ''}`, '');
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const dialog = useRef<HTMLDialogElement>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (reason?.required && text.trim() === '') return setProblem('Give a reason: it is recorded.');
    setIsBusy(true);
    setProblem(undefined);
    try {
      const done = await run(text.trim());
      clear();
      notifyOnNextPage(done);
      dialog.current?.close();
      await queries.invalidateQueries();
    } catch (error) {
      setProblem(problemText(error));
      setIsBusy(false);
    }
  };
  return (
    <dialog
      ref={(element) => {
        dialog.current = element;
        if (element && !element.open) element.showModal();
      }}
      className="dialog"
      aria-labelledby={title}
      onClose={onClose}
    >
      <form className="form" onSubmit={submit}>
        <h2 id={title}>{confirm}?</h2>
        <div>{effect}</div>
        {reason && (
          <TextField label={reason.label} value={text} onChange={setText} optional={!reason.required} maxLength={500} />
        )}
        {problem !== undefined && (
          <Alert type="error">
            <UntrustedText text={problem} lines="many" max={1_000} />
          </Alert>
        )}
        <div className="buttons">
          <Button variant="primary" formAction="submit" loading={isBusy}>
            {confirm}
          </Button>
          <Button formAction="none" onClick={() => dialog.current?.close()}>
            Cancel
          </Button>
        </div>
        <div className="on-command-line">
          On the command line: <CommandLine command={command(text.trim())} />
        </div>
      </form>
    </dialog>
  );
}

/** A word of a command line, in quotes if the shell needs them. */
export const word = (text: string): string =>
  /^[\w@%+=:,./{}-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
