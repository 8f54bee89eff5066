import { type AwsEnvironment, credentialsOf } from '../entry/environment.ts';
import { serviceUrl } from '../entry/sign-aws-request.ts';
import { CountersignError } from '../run/errors.ts';
import type { Access } from './connector.ts';

/** Opens a tenant's connection by name; throws CONNECTION_MISSING, with what to do, if there is none. */
export interface Connections {
  open(tenant: string, name: string): Promise<Access>;
}

/** Undefined if the tenant has no such connection. */
export const openIfDefined = (connections: Connections, tenant: string, name: string): Promise<Access | undefined> =>
  connections.open(tenant, name).catch((error: unknown) => {
    if (error instanceof CountersignError && error.code === 'CONNECTION_MISSING') return undefined;
    throw error;
  });

export const BEDROCK = 'bedrock';

/** Connections that notify people. Publicly reachable functions open them, so their credentials are in a separate secret. */
export const MESSAGING: readonly string[] = ['slack', 'pagerduty'];

/** Adds to the tenants' connections: Bedrock, which uses the role of the function, and the URL of the stage. */
export class StageConnections implements Connections {
  readonly #targets: Connections;
  readonly #messaging: Connections;
  readonly #ownUrl: string;
  readonly #bedrock: Access;

  constructor(
    { targets, messaging }: { targets: Connections; messaging: Connections },
    { ownUrl, aws }: { ownUrl: string; aws: AwsEnvironment },
  ) {
    this.#targets = targets;
    this.#messaging = messaging;
    this.#ownUrl = ownUrl;
    this.#bedrock = bedrockAccess(aws);
  }

  async open(tenant: string, name: string): Promise<Access> {
    if (name === BEDROCK) return this.#bedrock;
    const connections = MESSAGING.includes(name) ? this.#messaging : this.#targets;
    return { ...(await connections.open(tenant, name)), ownUrl: this.#ownUrl };
  }
}

function bedrockAccess(aws: AwsEnvironment): Access {
  return {
    baseUrl:
      aws.AWS_ENDPOINT_URL_BEDROCK_RUNTIME ?? aws.AWS_ENDPOINT_URL ?? serviceUrl('bedrock-runtime', aws.AWS_REGION),
    instance: aws.AWS_REGION,
    credential: { ...credentialsOf(aws) },
  };
}
