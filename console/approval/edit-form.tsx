import Button from '@cloudscape-design/components/button';
import type { RequestFor } from '../../client/api-client.ts';
import { useDraft } from '../parts/draft.ts';
import { CheckField, TextArea, TextField } from '../parts/form.tsx';
import { safeText } from '../parts/untrusted-text.tsx';
import type { ShownApproval } from './approval-page.tsx';

type Editable = ShownApproval['forDecision']['editable'][number];
type Edit = Extract<RequestFor<'POST /api/v1/approvals/{id}/decision'>['body'], { decision: 'edit' }>['fields'];

interface EditFormProps {
  approval: ShownApproval;
  isSending: boolean;
  onSave: (fields: Edit) => void;
  onBack: () => void;
}

const MULTILINE_FROM_CHARACTERS = 80;

const textOf = ({ type, value }: Editable): string =>
  type === 'text' ? String(value) : type === 'json' ? JSON.stringify(value, null, 2) : String(value);

/** One typed input for each field that an edit may change. */
export function EditForm({ approval, isSending, onSave, onBack }: EditFormProps) {
  const { editable } = approval.forDecision;
  const [typed, setTyped] = useDraft<Record<string, string>>(`edit.${approval.approvalId}`, {});
  const changed = editable.filter((field) => typed[field.field] !== undefined && typed[field.field] !== textOf(field));
  const problems = new Map(changed.flatMap((field) => problemOf(field, typed[field.field] ?? '')));
  const save = () => {
    const fields = changed.map((field) => [field.field, parsedAs(field, typed[field.field] ?? '')]);
    onSave(Object.fromEntries(fields));
  };
  return (
    <>
      <p>If you edit, you cannot approve. Earlier votes no longer count, and policy checks the write again.</p>
      {editable.map((field) => (
        <FieldInput
          key={field.field}
          field={field}
          problem={problems.get(field.field)}
          value={typed[field.field] ?? textOf(field)}
          onChange={(value) => setTyped({ ...typed, [field.field]: value })}
        />
      ))}
      <div className="buttons">
        <Button
          variant="primary"
          loading={isSending}
          disabled={changed.length === 0 || problems.size > 0}
          disabledReason={changed.length === 0 ? 'Nothing is changed yet' : 'A value is not valid'}
          onClick={save}
        >
          Save the changed write
        </Button>
        <Button onClick={onBack}>Back</Button>
      </div>
    </>
  );
}

function descriptionOf({ reference, choices, type }: Editable): string | undefined {
  if (reference) return choices.length > 0 ? 'Choose a name, or type the id of another record' : 'The id of a record';
  return type === 'json' ? 'JSON' : undefined;
}

function problemOf({ field, type }: Editable, text: string): [string, string][] {
  if (type === 'number' && (text.trim() === '' || Number.isNaN(Number(text)))) return [[field, 'Type a number.']];
  if (type !== 'json') return [];
  try {
    JSON.parse(text);
    return [];
  } catch {
    return [[field, 'This is not JSON: 12, true, ["a", "b"], or "text" in quotes.']];
  }
}

function parsedAs({ type, choices }: Editable, text: string): Edit[string] {
  if (type === 'text') return choices.find(({ name }) => name === text)?.value ?? text;
  if (type === 'number') return Number(text);
  return type === 'boolean' ? text === 'true' : JSON.parse(text);
}

interface FieldInputProps {
  field: Editable;
  problem: string | undefined;
  value: string;
  onChange: (value: string) => void;
}

function FieldInput({ field, problem, value, onChange }: FieldInputProps) {
  const { type, choices } = field;
  const shared = { label: safeText(field.field, 80), hint: descriptionOf(field), problem };
  if (type === 'boolean') {
    return (
      <CheckField
        label={shared.label}
        checked={value === 'true'}
        onChange={(isChecked) => onChange(String(isChecked))}
      />
    );
  }
  if (choices.length > 0) {
    return (
      <TextField
        {...shared}
        value={choices.find((choice) => choice.value === value)?.name ?? value}
        suggestions={choices.map(({ name }) => name)}
        onChange={(text) => onChange(choices.find(({ name }) => name === text)?.value ?? text)}
      />
    );
  }
  const isLong = type === 'json' || value.length > MULTILINE_FROM_CHARACTERS || value.includes('\n');
  return isLong ? (
    <TextArea {...shared} value={value} rows={6} onChange={onChange} />
  ) : (
    <TextField {...shared} value={value} onChange={onChange} />
  );
}
