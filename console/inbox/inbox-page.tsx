import { Page } from '../parts/page.tsx';

export default function InboxPage() {
  return <Page title="Inbox">…</Page>;
}
