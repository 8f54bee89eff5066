import Button from '@cloudscape-design/components/button';
import type { WholeRun } from '../data/run.ts';
import { useDraft } from '../parts/draft.ts';
import { TextArea } from '../parts/form.tsx';
import { safeText } from '../parts/untrusted-text.tsx';
import type { RunAction } from './perform-action.ts';

interface ActionFormProps {
  whole: WholeRun;
  action: RunAction;
  label: string;
  isSending: boolean;
  /** True if it was done: then what was typed is forgotten. */
  onConfirm: (body: object) => Promise<boolean>;
  onBack: () => void;
}

interface Typed {
  text: string;
  outcome: string;
  writes: Record<string, string>;
}

/** Asks before an action that ends, undoes or settles something, and for what it needs. */
export function ActionForm({ whole, action, label, isSending, onConfirm, onBack }: ActionFormProps) {
  const { run, receipts } = whole;
  const [typed, setTyped, clear] = useDraft<Typed>(`${run.runId}.${action.action}`, {
    text: '',
    outcome: '',
    writes: {},
  });
  const isResolve = action.action === 'resolve';
  const isSignal = action.action === 'signal';
  const unknown = isResolve
    ? receipts.filter(
        ({ runId, outcome, effect }) =>
          runId === run.runId && effect !== 'read' && ['unknown', 'intent'].includes(outcome),
      )
    : [];
  const problem = problemOf(
    action.action,
    typed,
    unknown.map(({ stepId }) => stepId),
  );
  const bodyOf = (reason: string): object => {
    if (isResolve) return { outcome: typed.outcome, reason, writes: typed.writes };
    if (isSignal) return { event: action.about, payload: reason === '' ? null : JSON.parse(reason) };
    return reason === '' ? {} : { reason };
  };
  const confirm = async () => {
    if (await onConfirm(bodyOf(typed.text.trim()))) clear();
  };
  return (
    <div className="decide">
      {isResolve && (
        <Choice
          label="How was the run settled?"
          value={typed.outcome}
          options={{ succeeded: 'It succeeded', failed: 'It failed' }}
          onChange={(outcome) => setTyped({ ...typed, outcome })}
        />
      )}
      {unknown.map(({ stepId, target }) => (
        <Choice
          key={stepId}
          label={`Step ${safeText(stepId, 60)}: was the write at ${safeText(target, 80)} made?`}
          value={typed.writes[stepId] ?? ''}
          options={{ happened: 'Yes, it was made', did_not: 'No, it was not made' }}
          onChange={(finding) => setTyped({ ...typed, writes: { ...typed.writes, [stepId]: finding } })}
        />
      ))}
      <TextArea
        label={isSignal ? `Payload of ${safeText(action.about ?? 'the signal', 60)} (JSON)` : 'Reason'}
        optional={!isResolve}
        value={typed.text}
        rows={3}
        autoFocus
        onChange={(text) => setTyped({ ...typed, text })}
      />
      <div className="buttons">
        <Button
          variant="primary"
          loading={isSending}
          disabled={problem !== undefined}
          disabledReason={problem}
          onClick={confirm}
        >
          {label}
        </Button>
        <Button onClick={onBack}>Back</Button>
      </div>
    </div>
  );
}

function problemOf(
  action: RunAction['action'],
  { text, outcome, writes }: Typed,
  unknown: readonly string[],
): string | undefined {
  if (action === 'signal' && text.trim() !== '') {
    try {
      JSON.parse(text);
    } catch {
      return 'The payload is not JSON';
    }
  }
  if (action !== 'resolve') return undefined;
  if (outcome === '') return 'Say how it was settled';
  if (unknown.some((step) => writes[step] === undefined)) return 'Say of each write whether it was made';
  return text.trim() === '' ? 'Give a reason' : undefined;
}

interface ChoiceProps {
  label: string;
  value: string;
  options: Record<string, string>;
  onChange: (value: string) => void;
}

function Choice({ label, value, options, onChange }: ChoiceProps) {
  return (
    <fieldset className="choice">
      <legend>{label}</legend>
      {Object.entries(options).map(([option, text]) => (
        <label key={option}>
          <input type="radio" name={label} checked={value === option} onChange={() => onChange(option)} /> {text}
        </label>
      ))}
    </fieldset>
  );
}
