import { handleDefinitions } from '../../../lambdas/api/definitions/definitions.ts';
import type { HttpEvent } from '../../../lambdas/entry/http.ts';
import { CountingIds } from '../../fakes/counting-ids.ts';
import { FakeClock } from '../../fakes/fake-clock.ts';
import { MemoryAgents } from '../../fakes/memory/memory-agents.ts';
import type { MemoryDefinitions } from '../../fakes/memory/memory-definitions.ts';
import { MemorySchedules } from '../../fakes/memory/memory-schedules.ts';
import { OwnThreadExpressions } from '../../fakes/own-thread-expressions.ts';

export interface Asking {
  as?: { tenant?: string; person: string; role: string; machine?: boolean };
  id?: string;
  body?: unknown;
  query?: Record<string, string>;
  clock?: FakeClock;
  schedules?: MemorySchedules;
  peopleRules?: { coolDownMs: number; secondOwner: boolean };
}

const ids = new CountingIds();

/** One request to the definitions API, by acme's owner by default. */
export async function askAbout(definitions: MemoryDefinitions, routeKey: string, asking: Asking = {}) {
  const { as, id, body, query, clock = new FakeClock(), schedules = new MemorySchedules() } = asking;
  const { peopleRules = { coolDownMs: 0, secondOwner: false } } = asking;
  const event = {
    routeKey,
    rawPath: routeKey,
    pathParameters: { id, name: id },
    queryStringParameters: query,
    // A file is sent unchanged.
    body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
    requestContext: { authorizer: { lambda: { tenant: 'acme', person: 'olivia', role: 'owner', ...as } } },
  } as unknown as HttpEvent;
  const answer = await handleDefinitions(
    {
      definitions,
      agents: new MemoryAgents(),
      schedules,
      cursorSecret: async () => 'secret',
      clock,
      ids,
      peopleRules,
      expressions: new OwnThreadExpressions(() => 0),
    },
    event,
  );
  return { status: answer.statusCode, body: JSON.parse(answer.body ?? '') };
}
