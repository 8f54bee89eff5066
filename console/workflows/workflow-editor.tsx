import { useLocation } from 'wouter';
import { call } from '../data/api.ts';
import { CodeEditor } from '../parts/code-editor.tsx';
import { useDraft } from '../parts/draft.ts';
import { notifyOnNextPage } from '../parts/next-page.ts';
import { Section } from '../parts/section.tsx';
import { SubmitForm } from '../parts/submit.tsx';
import { TextDiff } from '../parts/text-diff.tsx';
import { Simulate } from './simulate.tsx';
import { useValidation } from './validation.ts';

interface WorkflowEditorProps {
  /** Undefined for a new workflow. */
  published?: { name: string; version: number; source: string };
}

const EMPTY = `name: my-workflow
description: What it does, in a sentence
steps:
  - id: label
    tool: github.labels.add
    with:
      owner: "{% trigger.owner %}"
      repo: "{% trigger.repo %}"
      number: "{% trigger.number %}"
      labels: [triage]
`;

/** Edits the file of a workflow: validation while somebody types, what would change, a plan, and publishing. */
export function WorkflowEditor({ published }: WorkflowEditorProps) {
  const before = published?.source ?? EMPTY;
  const [text, setText, clear] = useDraft(`workflow.${published?.name ?? ''}`, before);
  const { isValid, problems, state } = useValidation(text);
  const [, go] = useLocation();
  const isChanged = published === undefined || text !== before;
  const publish = async () => {
    const { name, version, warnings } = await call('POST /api/v1/workflows', { body: text });
    clear();
    go(`/workflows/${encodeURIComponent(name)}`);
    if (warnings.length > 0) notifyOnNextPage(warnings.join('\n'), 'warning');
    return `Version ${version} of ${name} is published. Automations that name another version still run that one.`;
  };
  return (
    <>
      <SubmitForm
        label="Edit the workflow"
        button={published ? `Publish version ${published.version + 1}` : 'Publish the workflow'}
        right="workflows:write"
        disabledReason={
          isValid === false
            ? 'Correct the problems first.'
            : isChanged
              ? undefined
              : 'Nothing was changed since the last version.'
        }
        command={`countersign workflow publish ${published?.name ?? 'my-workflow'}.yaml`}
        run={publish}
      >
        <CodeEditor label="Workflow (YAML)" value={text} onChange={setText} problems={problems} state={state} />
      </SubmitForm>
      {published && isChanged && (
        <Section title={`Changes since version ${published.version}`}>
          <TextDiff label="Changes" before={before} after={text} />
        </Section>
      )}
      <Section title="Simulate">
        <Simulate
          workflow={text}
          file={`${published?.name ?? 'my-workflow'}.yaml`}
          disabledReason={isValid === false ? 'Correct the problems first.' : undefined}
        />
      </Section>
    </>
  );
}
