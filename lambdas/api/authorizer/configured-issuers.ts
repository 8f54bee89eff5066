import type { StageIssuer } from '../../entry/oidc-issuer.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import type { TokenIssuers } from './verify-token.ts';

/**
 * The issuers of the stage, then those that tenants name in their settings. A prod stage uses only its own: naming an
 * issuer lets its operator act as any person of the tenant, and there that takes more than one owner.
 */
export function configuredIssuers(
  ofStage: readonly StageIssuer[],
  stageKind: 'prod' | 'staging' | 'dev',
  definitions: Pick<Definitions, 'issuer'>,
): TokenIssuers['find'] {
  return async (issuer, audience) => {
    const named = ofStage.find((each) => each.issuer === issuer && each.audience === audience);
    return named ?? (stageKind === 'prod' ? undefined : definitions.issuer(issuer, audience));
  };
}
