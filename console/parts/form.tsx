import { type ReactNode, useId } from 'react';
import { UntrustedText } from './untrusted-text.tsx';

interface FieldProps {
  label: string;
  hint?: ReactNode;
  optional?: boolean;
  /** What is wrong with the value, and what to do. */
  problem?: string | undefined;
}

interface ControlProps {
  id: string;
  'aria-describedby'?: string;
  'aria-invalid'?: true;
}

/** A label with its field, hint and problem. Fields are plain HTML: components for forms would add 40 KB. */
export function Field({
  label,
  hint,
  optional,
  problem,
  children,
}: FieldProps & { children: (props: ControlProps) => ReactNode }) {
  const id = useId();
  const described = hint !== undefined || problem !== undefined;
  return (
    <div className="field">
      <label htmlFor={id}>
        {label}
        {optional && <small> (optional)</small>}
      </label>
      {children({
        id,
        ...(described && { 'aria-describedby': `${id}-hint` }),
        ...(problem !== undefined && { 'aria-invalid': true }),
      })}
      {described && (
        <small id={`${id}-hint`} className={problem === undefined ? 'hint' : 'hint problem'}>
          {problem === undefined ? hint : <UntrustedText text={problem} lines="many" max={600} />}
        </small>
      )}
    </div>
  );
}

interface TextFieldProps extends FieldProps {
  value: string;
  onChange(value: string): void;
  type?: 'text' | 'number' | 'password' | 'datetime-local' | 'date';
  placeholder?: string;
  maxLength?: number;
  readOnly?: boolean;
  /** Values to choose from; others can be typed too. */
  suggestions?: readonly string[];
}

export function TextField({ value, onChange, type = 'text', suggestions, ...props }: TextFieldProps) {
  const { placeholder, maxLength, readOnly, ...field } = props;
  const list = useId();
  return (
    <Field {...field}>
      {(control) => (
        <>
          <input
            {...control}
            {...{ type, value, placeholder, maxLength, readOnly }}
            autoComplete="off"
            spellCheck={false}
            {...(suggestions && { list })}
            onChange={({ target }) => onChange(target.value)}
          />
          {suggestions && (
            <datalist id={list}>
              {suggestions.map((each) => (
                <option key={each} value={each} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

export function TextArea({
  value,
  onChange,
  rows = 4,
  mono = false,
  autoFocus = false,
  ...field
}: FieldProps & { value: string; onChange(value: string): void; rows?: number; mono?: boolean; autoFocus?: boolean }) {
  return (
    <Field {...field}>
      {(control) => (
        <textarea
          {...control}
          {...{ value, rows }}
          // biome-ignore lint/a11y/noAutofocus: the field appears because somebody pressed the button that needs it
          autoFocus={autoFocus}
          className={mono ? 'mono' : undefined}
          spellCheck={!mono}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  );
}

export function SelectField<Value extends string>({
  value,
  onChange,
  options,
  ...field
}: FieldProps & {
  value: Value;
  onChange(value: NoInfer<Value>): void;
  options: readonly { value: NoInfer<Value>; text: string }[];
}) {
  return (
    <Field {...field}>
      {(control) => (
        <select {...control} value={value} onChange={({ target }) => onChange(target.value as Value)}>
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function CheckField({
  label,
  hint,
  checked,
  onChange,
}: Pick<FieldProps, 'label' | 'hint'> & { checked: boolean; onChange(checked: boolean): void }) {
  const id = useId();
  return (
    <div className="field check">
      <input id={id} type="checkbox" checked={checked} onChange={({ target }) => onChange(target.checked)} />
      <label htmlFor={id}>
        {label}
        {hint !== undefined && <small className="hint"> {hint}</small>}
      </label>
    </div>
  );
}
