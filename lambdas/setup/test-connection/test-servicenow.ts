import * as z from 'zod';
import type { Access } from '../../connectors/connector.ts';
import { servicenow } from '../../connectors/servicenow/client.ts';
import type { Observed } from './test-connection.ts';

const Incidents = z.object({ result: z.array(z.object({ sys_id: z.string() })) });
const CLOUD_HOST = /^([^.]+)\.service-now\.com$/;

export async function testServicenow(access: Access): Promise<Observed[]> {
  const path = 'incident?sysparm_limit=1&sysparm_fields=sys_id';
  const { body } = await servicenow(access, { method: 'GET', path, responseSchema: Incidents });
  const isEmpty = body.result.length === 0;
  return [
    isEmpty
      ? { level: 'warning', text: 'the user sees no incident: check its roles (usually itil), or create an incident' }
      : { level: 'ok', text: 'the user can read incidents' },
    ...instanceProblem(access),
  ];
}

/** Deliveries name the instance too. With another name, the same incident would be two targets. */
function instanceProblem({ baseUrl, instance }: Access): Observed[] {
  const name = CLOUD_HOST.exec(new URL(baseUrl).hostname)?.[1];
  if (name === undefined || name === instance) return [];
  return [{ level: 'error', text: `wrong instance: baseUrl is the instance ${name}, and \`instance\` is ${instance}` }];
}
