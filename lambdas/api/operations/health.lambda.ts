import { httpHandler } from '../../entry/http.ts';
import { healthRoutes } from '../contract/operations.ts';
import { router } from '../router.ts';

/** Shows only that requests reach the stage. Alarms report what is wrong inside it. */
const handleHealth = router<undefined, typeof healthRoutes>(healthRoutes, {
  getHealth: async () => ({ status: 200, body: { status: 'ok' } }),
});

export const handler = httpHandler((event) => handleHealth(undefined, event));
