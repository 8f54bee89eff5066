import type { HttpEvent } from '../../entry/http.ts';
import type { StageIssuer } from '../../entry/oidc-issuer.ts';
import type { ProtectedResource } from '../contract/mcp.ts';
import { allScopes } from './offered-tools.ts';

const METADATA_PATH = '/.well-known/oauth-protected-resource/mcp';

/** The address at which the client reached the stage: a stage can have several domains. API Gateway sets both parts. */
export const originOf = ({ headers, requestContext }: HttpEvent): string =>
  `${headers?.['x-forwarded-proto'] === 'http' ? 'http' : 'https'}://${requestContext.domainName}`;

export const metadataUrl = (event: HttpEvent): string => `${originOf(event)}${METADATA_PATH}`;

/** What an OAuth client must know (RFC 9728). Issuers that only a tenant names are not public. */
export function protectedResource(issuers: readonly StageIssuer[], event: HttpEvent): ProtectedResource {
  return {
    resource: `${originOf(event)}/mcp`,
    resource_name: 'Countersign',
    authorization_servers: [...new Set(issuers.map(({ issuer }) => issuer))],
    scopes_supported: allScopes(),
    bearer_methods_supported: ['header'],
  };
}
