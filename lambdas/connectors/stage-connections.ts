import * as z from 'zod';
import type { Connections } from './connections.ts';
import type { Access } from './connector.ts';

export const BEDROCK = 'bedrock';

/** What tells people. Functions that anybody may call open these, so their credentials lie apart from those of targets. */
const MESSAGING: readonly string[] = ['slack', 'pagerduty'];

/** What Lambda and the SDKs agree on; the endpoints are set where AWS is somewhere else, as on the local host. */
export const AwsEnvironment = z.object({
  AWS_REGION: z.string(),
  AWS_ACCESS_KEY_ID: z.string(),
  AWS_SECRET_ACCESS_KEY: z.string(),
  AWS_SESSION_TOKEN: z.string().optional(),
  AWS_ENDPOINT_URL: z.url().optional(),
  AWS_ENDPOINT_URL_BEDROCK_RUNTIME: z.url().optional(),
});
type AwsEnvironment = z.infer<typeof AwsEnvironment>;

/**
 * What the stage adds to the connections of its tenants: models, which belong to the account and are reached as the
 * function's own role, and where the stage itself answers.
 */
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
  const deployed = `https://bedrock-runtime.${aws.AWS_REGION}.amazonaws.com`;
  return {
    baseUrl: aws.AWS_ENDPOINT_URL_BEDROCK_RUNTIME ?? aws.AWS_ENDPOINT_URL ?? deployed,
    instance: aws.AWS_REGION,
    credential: {
      accessKeyId: aws.AWS_ACCESS_KEY_ID,
      secretAccessKey: aws.AWS_SECRET_ACCESS_KEY,
      ...(aws.AWS_SESSION_TOKEN && { sessionToken: aws.AWS_SESSION_TOKEN }),
    },
  };
}
