import type { ResolvedStack } from '../../local/template/template.ts';

/** What the template says about traces: variables of the sealer and of the API, its grants, and the secret. */
export function tracesIn(stack: ResolvedStack) {
  const ofFunction = (start: string): Record<string, string> => {
    const [found] = stack.ofType('AWS::Lambda::Function').filter(({ logicalId }) => logicalId.startsWith(start));
    const { Variables = {} } = Object(found?.properties.Environment) as { Variables?: Record<string, string> };
    return Variables;
  };
  const [role] = stack
    .ofType('AWS::IAM::Role')
    .filter(({ logicalId }) => logicalId.startsWith('EvidenceVaultSealRole'));
  const { TRACES_URL: url, TRACES_SECRET_ARN: secret } = ofFunction('EvidenceVaultSeal');
  const secrets = stack.ofType('AWS::SecretsManager::Secret').filter(({ logicalId }) => logicalId.includes('Traces'));
  const granted = JSON.stringify(role?.properties.Policies).match(/(xray|secretsmanager):[A-Z]\w+/g) ?? [];
  return { url, secret, secrets: secrets.map(({ arn }) => arn), granted, link: ofFunction('ApiRuns').TRACE_URL };
}
