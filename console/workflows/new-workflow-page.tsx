import { Page } from '../parts/page.tsx';
import { WorkflowEditor } from './workflow-editor.tsx';

export default function NewWorkflowPage() {
  return (
    <Page
      title="Write a workflow"
      description={
        <>
          The API checks it while you type. <code>countersign tools</code> lists what steps can do.
        </>
      }
    >
      <WorkflowEditor />
    </Page>
  );
}
