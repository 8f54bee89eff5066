import type { StageIssuer } from '../../entry/oidc-issuer.ts';
import { signInRoutes } from '../contract/access.ts';
import type { Contract } from '../contract/index.ts';
import { healthRoutes } from '../contract/operations.ts';
import { router } from '../router.ts';

const routes = { ...healthRoutes, ...signInRoutes };

/** What everybody may know about a stage. */
export const handleHealth = router<{ issuers: readonly StageIssuer[] }, Contract['health']>(routes, {
  /** Shows only that requests reach the stage. Alarms report what is wrong inside it. */
  getHealth: async () => ({ status: 200, body: { status: 'ok' } }),

  listSignIn: async ({ issuers }) => ({
    status: 200,
    body: {
      issuers: issuers.map(({ name, issuer, audience, clientId = audience }) => ({ name, issuer, clientId, audience })),
    },
  }),
});
