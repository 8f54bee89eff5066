import { sourceOf } from './source-text.tsx';
import { WorkflowArea } from './workflow-area.tsx';
import { WorkflowEditor } from './workflow-editor.tsx';

export default function WorkflowEditPage({ name }: { name: string }) {
  return (
    <WorkflowArea name={name} part="Publishing makes a new version. Published versions never change.">
      {(newest) => <WorkflowEditor key={newest.version} published={{ ...newest, source: sourceOf(newest) }} />}
    </WorkflowArea>
  );
}
