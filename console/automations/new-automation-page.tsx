import { useLocation } from 'wouter';
import { Page } from '../parts/page.tsx';
import { AutomationForm } from './automation-form.tsx';

export default function NewAutomationPage() {
  const [, go] = useLocation();
  return (
    <Page
      title="Add an automation"
      description="Says which event starts which version of a workflow, or which session."
    >
      <AutomationForm onSaved={(name) => go(`/automations/${encodeURIComponent(name)}`)} />
    </Page>
  );
}
