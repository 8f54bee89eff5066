import type { RecordedCall } from '../../../local/simulators/calls.ts';
import type { Incident } from './deliveries.ts';

/** How many times each write of a triage run reached its target. */
export function triageWrites(calls: readonly RecordedCall[], { sysId, number }: Incident) {
  const patches = calls.filter(
    ({ method, path }) => method === 'PATCH' && path.split('?')[0]?.endsWith(`/incident/${sysId}`),
  );
  const posts = calls.filter(({ method, path }) => method === 'POST' && path.endsWith('/chat.postMessage'));
  return {
    assign: patches.filter(({ body }) => has(body, 'assignment_group')).length,
    note: patches.filter(({ body }) => has(body, 'work_notes')).length,
    post: posts.filter(({ body }) => (body as { text: string }).text.startsWith(`${number}:`)).length,
  };
}

/** How many times labels were added to an issue. */
export function labelWrites(calls: readonly RecordedCall[], issue: number): number {
  return calls.filter(({ method, path }) => method === 'POST' && path.endsWith(`/issues/${issue}/labels`)).length;
}

function has(body: unknown, field: string): boolean {
  return typeof body === 'object' && body !== null && field in body;
}
