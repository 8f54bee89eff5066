import { Page } from '../parts/page.tsx';

export default function ApprovalPage({ id }: { id: string }) {
  return <Page title={`Approval ${id}`}>…</Page>;
}
