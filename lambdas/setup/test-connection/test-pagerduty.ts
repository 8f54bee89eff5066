import * as z from 'zod';
import type { Access } from '../../connectors/connector.ts';
import { exchange, urlAt } from '../../connectors/exchange.ts';
import { routingKeyOf } from '../../connectors/pagerduty/events.ts';
import { TargetRefused } from '../../connectors/target-errors.ts';
import type { Observed } from './test-connection.ts';

/** The length of an integration key of the Events API v2. */
const ROUTING_KEY_CHARACTERS = 32;

/** The Events API has no read, and an event could page somebody. So this only shows that the address responds. */
export async function testPagerduty(access: Access): Promise<Observed[]> {
  const routingKey = routingKeyOf(access);
  await exchange({
    system: 'PagerDuty',
    method: 'GET',
    url: urlAt(access.baseUrl, '/v2/enqueue'),
    headers: {},
    responseSchema: z.unknown(),
  }).catch((error: unknown) => {
    if (!(error instanceof TargetRefused) || error.status === undefined) throw error;
  });
  if (routingKey.length !== ROUTING_KEY_CHARACTERS) {
    const text = `routingKey has ${routingKey.length} characters; the integration key of Events API v2 has ${ROUTING_KEY_CHARACTERS}`;
    return [{ level: 'error', text }];
  }
  return [{ level: 'ok', text: 'PagerDuty responds; only an event could show whether the routing key is valid' }];
}
