import Button from '@cloudscape-design/components/button';
import { useState } from 'react';
import { call } from '../data/api.ts';
import { Action } from '../parts/action.tsx';
import { CodeEditor } from '../parts/code-editor.tsx';
import { useDraft } from '../parts/draft.ts';
import { SelectField, TextField } from '../parts/form.tsx';
import { notifyOnNextPage } from '../parts/next-page.ts';
import { Section } from '../parts/section.tsx';
import { TextDiff } from '../parts/text-diff.tsx';
import { Replay } from './replay.tsx';
import { TestPolicies } from './test-policies.tsx';

export type Files = Readonly<Record<string, string>>;

const FILE_NAME = /^[a-z0-9][a-z0-9._-]{0,58}\.cedar$/;
const EXAMPLE = `@id("change-freeze")
@reason("no changes in December")
forbid (principal, action == Action::"execute", resource)
when { context.destructive };
`;

/** Other policies than those in force: edit them, test them with cases, replay recorded decisions, then publish them. */
export function TryPolicies({ inForce }: { inForce: Files }) {
  const [files, setFiles, clear] = useDraft<Files>('policies', inForce);
  const isChanged = JSON.stringify(files) !== JSON.stringify(inForce);
  return (
    <>
      <Section
        title="Change"
        actions={
          <div className="buttons">
            {isChanged && <Button onClick={clear}>Discard the changes</Button>}
            <Publish files={files} isChanged={isChanged} onPublished={clear} />
          </div>
        }
      >
        <Editor files={files} onChange={setFiles} />
        {isChanged && <TextDiff label="Changes" before={textOf(inForce)} after={textOf(files)} />}
      </Section>
      <Section title="Test">
        <TestPolicies files={files} />
      </Section>
      <Section title="Replay">
        <Replay files={files} isChanged={isChanged} />
      </Section>
    </>
  );
}

const textOf = (files: Files): string =>
  Object.entries(files)
    .map(([name, text]) => `// ${name}\n${text}`)
    .join('\n');

function Editor({ files, onChange }: { files: Files; onChange(files: Files): void }) {
  const names = Object.keys(files);
  const [chosen, setChosen] = useState('');
  const [name, setName] = useState('');
  const shown = files[chosen] === undefined ? (names[0] ?? '') : chosen;
  const remove = () => onChange(Object.fromEntries(Object.entries(files).filter(([each]) => each !== shown)));
  const add = () => {
    onChange({ ...files, [name]: EXAMPLE });
    setChosen(name);
    setName('');
  };
  return (
    <div className="form wide">
      {names.length > 0 && (
        <>
          <SelectField
            label="File"
            value={shown}
            options={names.map((value) => ({ value, text: value }))}
            onChange={setChosen}
          />
          <CodeEditor
            label="Policies (Cedar)"
            rows={14}
            value={files[shown] ?? ''}
            onChange={(text) => onChange({ ...files, [shown]: text })}
            problems={[]}
            state="Checked when you test, replay or publish."
          />
          <div>
            <Button onClick={remove}>Remove this file</Button>
          </div>
        </>
      )}
      <TextField
        label="New file"
        optional
        placeholder="change-freeze.cedar"
        value={name}
        onChange={setName}
        problem={name === '' || FILE_NAME.test(name) ? undefined : 'Name files like change-freeze.cedar.'}
      />
      <div>
        <Button
          disabled={!FILE_NAME.test(name) || files[name] !== undefined}
          disabledReason={files[name] === undefined ? 'Give the file a name.' : 'There is a file with this name.'}
          onClick={add}
        >
          Add the file
        </Button>
      </div>
    </div>
  );
}

interface PublishProps {
  files: Files;
  isChanged: boolean;
  onPublished(): void;
}

function Publish({ files, isChanged, onPublished }: PublishProps) {
  return (
    <Action
      label="Publish the policies"
      variant="primary"
      effect={
        <p>
          The new policies decide from now on. Open approvals become stale and are requested again. In a prod stage, a
          second owner must confirm policies that do more than forbid.
        </p>
      }
      right="policies:write"
      disabledReason={isChanged ? undefined : 'Nothing was changed.'}
      command={() => 'countersign policy publish --policies FOLDER'}
      run={async () => {
        const published = await call('PUT /api/v1/policies', { body: { engine: 'cedar', files: { ...files } } });
        onPublished();
        if (!('pending' in published)) return `The policies are in force: ${published.hash}`;
        notifyOnNextPage('Nothing has changed yet: a second owner must confirm the policies.', 'warning');
        return 'The change is requested.';
      }}
    />
  );
}
