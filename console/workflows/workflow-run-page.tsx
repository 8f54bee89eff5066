import { RunNow } from './run-now.tsx';
import { WorkflowArea } from './workflow-area.tsx';

export default function WorkflowRunPage({ name }: { name: string }) {
  return (
    <WorkflowArea name={name} part="Starts a run of the newest version.">
      {({ definition }) => <RunNow of={{ workflow: name }} inputs={definition.inputs ?? {}} />}
    </WorkflowArea>
  );
}
