import * as z from 'zod';
import { tryParseJsonBytes } from '../../lambdas/entry/parse-json.ts';
import type { VaultConfig } from '../config.ts';
import { sendRequest } from '../http-request.ts';
import { CredentialUnavailable } from './credential-source.ts';

const TIMEOUT_MS = 10_000;

const VaultResponse = z.object({
  /** Also in Vault's audit log. */
  request_id: z.string().default(''),
  lease_id: z.string().default(''),
  lease_duration: z.int().default(0),
  data: z.record(z.string(), z.unknown()).nullish(),
  auth: z.object({ client_token: z.string(), lease_duration: z.int() }).nullish(),
});
export type VaultResponse = z.infer<typeof VaultResponse>;

/** One request to Vault's HTTP API. The response is overwritten as soon as it is parsed. */
export async function callVault(
  { address, namespace }: VaultConfig,
  token: string | undefined,
  [method, path, body]: [method: 'GET' | 'PUT' | 'POST', path: string, body?: unknown],
): Promise<VaultResponse> {
  const url = new URL(`${address.replace(/\/+$/, '')}/v1/${path}`);
  const headers = {
    'x-vault-request': 'true',
    ...(namespace !== undefined && { 'x-vault-namespace': namespace }),
    ...(token !== undefined && { 'x-vault-token': token }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
  };
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await sendRequest({ method, url, headers, timeoutMs: TIMEOUT_MS, ...text }).catch((cause: Error) => {
    throw new CredentialUnavailable(`Vault at ${url.host} does not respond: ${cause.message}`, { cause });
  });
  try {
    if (response.status >= 400) throw refusal(response.status, path, response.body);
    const { data } = VaultResponse.safeParse(response.body.length === 0 ? {} : tryParseJsonBytes(response.body));
    if (data) return data;
    throw new CredentialUnavailable(`the response to ${path} is not one of Vault; is ${url.origin} its address?`);
  } finally {
    response.body.fill(0);
  }
}

const HINTS: Readonly<Record<number, string>> = {
  400: 'check the role, and the secret id or the AWS role of this host',
  403: 'give the policy of the role the right to it',
  404: 'check the path in agent.yaml',
  503: 'unseal it',
};

/** Vault may quote the request of a login, so its message is not shown then. */
function refusal(status: number, path: string, body: Buffer): CredentialUnavailable {
  const { data } = z.object({ errors: z.array(z.string()) }).safeParse(tryParseJsonBytes(body));
  const said = path.endsWith('/login') ? '' : (data?.errors[0]?.split('\n')[0]?.slice(0, 200) ?? '');
  const hint = HINTS[status] ?? 'see its log';
  return new CredentialUnavailable(`Vault refused ${path} (${status}${said && `: ${said}`}); ${hint}`);
}
