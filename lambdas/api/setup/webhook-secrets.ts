import { Problem } from '../../entry/http.ts';
import type { Credentials } from '../../setup/credentials.ts';
import type { webhookSecretRoutes } from '../contract/setup/connections.ts';
import type { Handlers } from '../router.ts';

export interface WebhookSecretsPorts {
  credentials: Credentials;
  kind: 'prod' | 'staging' | 'dev';
}

export const webhookSecretHandlers: Handlers<WebhookSecretsPorts, typeof webhookSecretRoutes> = {
  async listWebhookSecrets({ credentials }, { caller: { tenant } }) {
    const { signing } = await credentials.describe({ tenant });
    return { status: 200, body: { secrets: signing } };
  },

  async saveWebhookSecret(ports, { caller: { tenant, person: actor }, params, body }) {
    const source = sourceOf(params);
    assertNotAlone(ports, source);
    return { status: 200, body: await ports.credentials.storeSigningSecret({ tenant, actor, source, ...body }) };
  },

  async deletePreviousWebhookSecrets({ credentials }, { caller: { tenant, person: actor }, params }) {
    const source = sourceOf(params);
    return { status: 200, body: await credentials.dropPreviousSecrets({ tenant, actor, source }) };
  },
};

/** In a path, a colon separates `generic:alerts`: some proxies decode an escaped slash. */
const sourceOf = ({ source }: { source: string }): string => source.replace(':', '/');

/**
 * A person who knows a signing secret can sign events of invented people, and Slack's can sign decisions of everybody. In
 * prod no single owner or admin may choose one, as no single owner may decide who approves.
 */
function assertNotAlone({ kind }: WebhookSecretsPorts, source: string): void {
  if (kind !== 'prod') return;
  const signs = source === 'slack' ? 'decisions of everybody' : 'events in the name of anybody';
  const command = `countersign webhook set-secret ${source} --stage STAGE --tenant TENANT`;
  throw new Problem(
    403,
    'FORBIDDEN',
    `in a prod stage only the operator sets the signing secret of ${source}, because it can sign ${signs}: ${command}, with AWS credentials`,
  );
}
