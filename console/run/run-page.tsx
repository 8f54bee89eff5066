import { Page } from '../parts/page.tsx';

export default function RunPage({ id }: { id: string }) {
  return <Page title={`Run ${id}`}>…</Page>;
}
