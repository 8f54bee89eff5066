import { signedHeaders } from '../../lambdas/entry/sign-aws-request.ts';
import type { VaultConfig } from '../config.ts';
import { CredentialUnavailable } from './credential-source.ts';
import { awsCredentials } from './secrets-manager.ts';

type AwsAuth = Extract<VaultConfig['auth'], { aws: unknown }>['aws'];

const REQUEST_BODY = 'Action=GetCallerIdentity&Version=2011-06-15';
const SERVER_ID_HEADER = 'x-vault-aws-iam-server-id';

/**
 * The login of Vault's AWS auth method: a signed request to STS that says who the caller is. Vault sends it, and trusts the
 * response of AWS. The request is of no other use to Vault.
 */
export async function awsLogin({ role, region, serverId }: AwsAuth): Promise<Record<string, string>> {
  const credentials = await awsCredentials(region);
  if (!credentials) throw new CredentialUnavailable('there are no AWS credentials on this host; give it a role');
  const url = new URL(region === 'us-east-1' ? 'https://sts.amazonaws.com/' : `https://sts.${region}.amazonaws.com/`);
  const own = {
    'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
    ...(serverId !== undefined && { [SERVER_ID_HEADER]: serverId }),
  };
  const signed = await signedHeaders({ service: 'sts', region, credentials, url, body: REQUEST_BODY, headers: own });
  return {
    role,
    iam_http_request_method: 'POST',
    iam_request_url: base64(url.href),
    iam_request_body: base64(REQUEST_BODY),
    iam_request_headers: base64(JSON.stringify({ ...signed, host: url.host })),
  };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');
