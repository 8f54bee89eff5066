import { handleSetup } from '../../lambdas/api/setup/setup.ts';
import type { HttpEvent } from '../../lambdas/entry/http.ts';
import { Problem } from '../../lambdas/entry/http.ts';
import type { FlagValues } from '../../lambdas/run/settings/flags.ts';
import type { TestFinding } from '../../lambdas/setup/credentials.ts';
import { StoredCredentials } from '../../lambdas/setup/stored-credentials.ts';
import { CountingIds } from '../fakes/counting-ids.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';
import { MemorySecretDocuments } from '../fakes/memory/memory-secret-documents.ts';

const OWN_URL = 'https://own.example.com';

interface Asking {
  params?: Record<string, string>;
  body?: unknown;
  query?: Record<string, string>;
  as?: { tenant?: string; person?: string; role?: string };
}

/** The setup API with its definitions and secrets in memory. */
export class SetupWorld {
  readonly definitions = new MemoryDefinitions();
  readonly documents = new MemorySecretDocuments();
  readonly clock = new FakeClock();
  readonly ids = new CountingIds();
  /** What the test of a connection finds. */
  findings: TestFinding[] = [];
  readonly credentials = new StoredCredentials({
    documents: this.documents,
    changes: this.definitions,
    clock: this.clock,
    ids: this.ids,
    tenants: ['acme', 'globex'],
    testConnection: async () => this.findings,
  });
  kind: 'prod' | 'staging' | 'dev' = 'dev';
  stageFlags: FlagValues = {};
  keys: { name: string; person: string; expiresAt?: string }[] = [];

  async ask(routeKey: string, { params, body, query, as }: Asking = {}) {
    const event = {
      routeKey,
      rawPath: routeKey,
      pathParameters: params,
      queryStringParameters: query,
      body: body === undefined ? undefined : JSON.stringify(body),
      requestContext: { authorizer: { lambda: { tenant: 'acme', person: 'olivia', role: 'owner', ...as } } },
    } as unknown as HttpEvent;
    try {
      const ports = { ...this.ports, kind: this.kind, stageFlags: this.stageFlags };
      const { statusCode, body: text = '' } = await handleSetup(ports, event);
      return { status: statusCode, body: JSON.parse(text), text };
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const { status, code, message: detail } = error;
      return { status, body: { code, detail }, text: detail };
    }
  }

  get ports() {
    const { definitions, credentials, clock, ids, kind } = this;
    const cursorSecret = async () => 'secret';
    const stage = { name: 'acme-prod', version: '1.0.0', hasAlarmReceiver: true };
    const keysOf = async () => this.keys;
    return { definitions, credentials, clock, ids, kind, stage, keysOf, cursorSecret, ownUrl: OWN_URL };
  }

  save(name: string, body: Record<string, unknown>, as?: Asking['as']) {
    return this.ask('PUT /api/v1/connections/{name}', { params: { name }, body, as });
  }

  async changes(tenant = 'acme') {
    return (await this.definitions.changes(tenant, { limit: 100 })).items;
  }
}

export const GITHUB = {
  baseUrl: 'https://api.github.com',
  instance: 'github.com',
  credential: { token: 'ghp_first_token' },
};
