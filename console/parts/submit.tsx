import Alert from '@cloudscape-design/components/alert';
import Button from '@cloudscape-design/components/button';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import type { Right } from '../../lambdas/people/rights.ts';
import { problemText } from '../data/api.ts';
import { CommandLine } from './copyable.tsx';
import { notifyOnNextPage } from './next-page.ts';
import { safeText, UntrustedText } from './untrusted-text.tsx';
import { useWhyNot } from './why-not.ts';

interface SubmitFormProps {
  /** Names the form for screen readers. */
  label: string;
  /** What the button does: `Save the automation`. */
  button: string;
  right?: Right;
  disabledReason?: string | undefined;
  /** The same on the command line. */
  command: string;
  /** Does it, and returns what was done; undefined if the form says so itself. */
  run(): Promise<string | undefined>;
  /** Further buttons. */
  beside?: ReactNode;
  children: ReactNode;
}

/** A form with one button. What the API refuses is shown above the button, and nothing that was typed is lost. */
export function SubmitForm({ label, button, right, disabledReason, command, run, beside, children }: SubmitFormProps) {
  const queries = useQueryClient();
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const whyNot = useWhyNot(right) ?? disabledReason;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (whyNot !== undefined) return;
    setIsBusy(true);
    setProblem(undefined);
    try {
      const done = await run();
      if (done !== undefined) notifyOnNextPage(done);
      await queries.invalidateQueries();
    } catch (error) {
      setProblem(problemText(error));
    } finally {
      setIsBusy(false);
    }
  };
  return (
    <form className="form" aria-label={label} onSubmit={submit}>
      {children}
      {problem !== undefined && (
        <Alert type="error">
          <UntrustedText text={problem} lines="many" max={2_000} />
        </Alert>
      )}
      <div className="buttons">
        <Button
          variant="primary"
          formAction="submit"
          loading={isBusy}
          disabled={whyNot !== undefined}
          {...(whyNot !== undefined && { disabledReason: safeText(whyNot) })}
        >
          {button}
        </Button>
        {beside}
      </div>
      <div className="on-command-line">
        On the command line: <CommandLine command={command} />
      </div>
    </form>
  );
}
