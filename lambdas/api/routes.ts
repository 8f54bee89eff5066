/** The routes behind API keys, by the function that handlers them; the stack makes them by the same names. */
export const API_ROUTES = {
  runs: [
    'GET /api/v1/runs',
    'GET /api/v1/runs/{id}',
    'GET /api/v1/runs/{id}/events',
    'GET /api/v1/runs/{id}/steps',
    'GET /api/v1/runs/{id}/steps/{index}',
  ],
  control: [
    'POST /api/v1/runs/{id}/cancel',
    'POST /api/v1/runs/{id}/pause',
    'POST /api/v1/runs/{id}/resume',
    'POST /api/v1/runs/{id}/retry',
    'POST /api/v1/runs/{id}/rollback',
    'POST /api/v1/runs/{id}/signal',
    'POST /api/v1/outbox/redrive',
  ],
  approvals: [
    'GET /api/v1/approvals',
    'GET /api/v1/approvals/{id}',
    'POST /api/v1/approvals/{id}/decision',
    'POST /api/v1/runs/{id}/approve',
    'POST /api/v1/runs/{id}/reject',
  ],
  evidence: [
    'GET /api/v1/runs/{id}/evidence',
    'GET /api/v1/runs/{id}/evidence/bundle.json',
    'GET /api/v1/runs/{id}/evidence/bundle.dsse.json',
  ],
  deadLetters: ['GET /api/v1/dead-letters', 'POST /api/v1/dead-letters/redrive'],
  workflows: [
    'GET /api/v1/workflows',
    'GET /api/v1/workflows/{name}',
    'GET /api/v1/workflows/{name}/versions/{version}',
    'POST /api/v1/workflows',
    'POST /api/v1/workflows/validate',
  ],
  /** Apart from other workflow routes: it reaches outside. */
  plan: ['POST /api/v1/workflows/simulate'],
  automations: ['GET /api/v1/automations', 'GET /api/v1/automations/{name}', 'PUT /api/v1/automations/{name}'],
  people: [
    'GET /api/v1/people',
    'GET /api/v1/people/{id}',
    'PUT /api/v1/people/{id}',
    'DELETE /api/v1/people/{id}',
    'PUT /api/v1/people/{id}/away',
    'PUT /api/v1/people/{id}/delegates',
    'POST /api/v1/people/{id}/confirm',
  ],
  changes: [
    'GET /api/v1/changes',
    'GET /api/v1/changes/pending',
    'POST /api/v1/changes/pending/{id}/confirm',
    'POST /api/v1/changes/pending/{id}/reject',
  ],
  policies: ['GET /api/v1/policies', 'PUT /api/v1/policies', 'POST /api/v1/policies/replay'],
} as const;

type Group = keyof typeof API_ROUTES;
export type Route<In extends Group> = (typeof API_ROUTES)[In][number];
