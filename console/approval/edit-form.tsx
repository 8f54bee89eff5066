import Button from '@cloudscape-design/components/button';
import Checkbox from '@cloudscape-design/components/checkbox';
import FormField from '@cloudscape-design/components/form-field';
import Input from '@cloudscape-design/components/input';
import Textarea from '@cloudscape-design/components/textarea';
import type { RequestFor } from '../../client/api-client.ts';
import { useDraft } from '../parts/draft.ts';
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
        <FormField
          key={field.field}
          label={safeText(field.field, 80)}
          description={descriptionOf(field)}
          errorText={problems.get(field.field)}
        >
          <FieldInput
            field={field}
            value={typed[field.field] ?? textOf(field)}
            onChange={(value) => setTyped({ ...typed, [field.field]: value })}
          />
        </FormField>
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

function FieldInput({ field, value, onChange }: { field: Editable; value: string; onChange: (value: string) => void }) {
  if (field.type === 'boolean') {
    return (
      <Checkbox checked={value === 'true'} onChange={({ detail }) => onChange(String(detail.checked))}>
        {safeText(field.field, 80)}
      </Checkbox>
    );
  }
  if (field.choices.length > 0) {
    const list = `choices-${field.field}`;
    const shown = field.choices.find((choice) => choice.value === value)?.name ?? value;
    return (
      <>
        <input
          className="plain-input"
          list={list}
          value={shown}
          aria-label={safeText(field.field, 80)}
          onChange={({ target }) =>
            onChange(field.choices.find(({ name }) => name === target.value)?.value ?? target.value)
          }
        />
        <datalist id={list}>
          {field.choices.map((choice) => (
            <option key={choice.value} value={choice.name} />
          ))}
        </datalist>
      </>
    );
  }
  const isLong = field.type === 'json' || value.length > MULTILINE_FROM_CHARACTERS || value.includes('\n');
  return isLong ? (
    <Textarea value={value} rows={6} onChange={({ detail }) => onChange(detail.value)} />
  ) : (
    <Input
      value={value}
      inputMode={field.type === 'number' ? 'decimal' : 'text'}
      onChange={({ detail }) => onChange(detail.value)}
    />
  );
}
