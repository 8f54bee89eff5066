import { useLocation } from 'wouter';
import { Page } from '../parts/page.tsx';
import { ScheduleForm } from './schedule-form.tsx';

export default function NewSchedulePage() {
  const [, go] = useLocation();
  return (
    <Page title="Add a schedule" description="You supply the values of its runs, so you cannot approve their writes.">
      <ScheduleForm onSaved={(name) => go(`/schedules/${encodeURIComponent(name)}`)} />
    </Page>
  );
}
