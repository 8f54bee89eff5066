import { CfnOutput, Stack } from 'aws-cdk-lib';
import { CfnWebACL } from 'aws-cdk-lib/aws-wafv2';
import type { Construct } from 'constructs';
import type { StageConfig } from '../stage-config.ts';

/** CloudFront reads web ACLs of all regions here. */
const REGION = 'us-east-1';

/** Rules that AWS maintains, with the capacity units that each has. */
const MANAGED = [
  { name: 'AWSManagedRulesAmazonIpReputationList', units: 25, counted: [] },
  // People report attacks in incidents, with the text of the attack.
  {
    name: 'AWSManagedRulesKnownBadInputsRuleSet',
    units: 200,
    counted: ['JavaDeserializationRCE_BODY', 'Log4JRCE_BODY', 'ReactJSRCE_BODY'],
  },
  {
    name: 'AWSManagedRulesCommonRuleSet',
    units: 700,
    // Bodies are webhooks and texts of people: GitHub sends more than 8 KB, and incidents quote URLs and HTML. The API checks
    // size and shape itself. Programs such as agents and webhook senders need no user agent. OIDC issuers return codes of
    // some kilobytes in the query of /sign-in.
    counted: [
      'CrossSiteScripting_BODY',
      'EC2MetaDataSSRF_BODY',
      'GenericLFI_BODY',
      'GenericRFI_BODY',
      'NoUserAgent_HEADER',
      'SizeRestrictions_BODY',
      'SizeRestrictions_QUERYSTRING',
    ],
  },
] as const;
const RATE_RULE_UNITS = 2;

/** What the rules of the web ACL need. More than 1,500 cost extra for each request. */
export const FIREWALL_UNITS = MANAGED.reduce((sum, { units }) => sum + units, RATE_RULE_UNITS);

/** Each costs a dollar a month. */
export const FIREWALL_RULES = MANAGED.length + 1;

/** The web ACL of a stage, as a stack of its own: it must be in us-east-1, wherever the stage is. */
export class FirewallStack extends Stack {
  constructor(scope: Construct, config: StageConfig & { firewall: NonNullable<StageConfig['firewall']> }) {
    super(scope, 'Firewall', {
      stackName: `countersign-${config.stage}-firewall`,
      description: `Countersign, stage ${config.stage}: web ACL of its CloudFront distribution`,
      env: { region: REGION },
      terminationProtection: config.kind === 'prod',
    });
    const acl = new CfnWebACL(this, 'WebAcl', {
      name: `countersign-${config.stage}`,
      scope: 'CLOUDFRONT',
      defaultAction: { allow: {} },
      visibilityConfig: visibility('all'),
      rules: [
        {
          name: 'requests-per-address',
          priority: 0,
          action: { block: {} },
          statement: {
            rateBasedStatement: { limit: config.firewall.requestsPerAddressIn5Minutes, aggregateKeyType: 'IP' },
          },
          visibilityConfig: visibility('requests-per-address'),
        },
        ...MANAGED.map(({ name, counted }, index) => ({
          name,
          priority: index + 1,
          overrideAction: { none: {} },
          statement: {
            managedRuleGroupStatement: {
              vendorName: 'AWS',
              name,
              ...(counted.length > 0 && { ruleActionOverrides: counted.map(countOnly) }),
            },
          },
          visibilityConfig: visibility(name),
        })),
      ],
    });
    new CfnOutput(this, 'WebAclArn', { value: acl.attrArn });
  }
}

const countOnly = (name: string) => ({ name, actionToUse: { count: {} } });

/** Samples would show the API keys and tokens in the headers of requests to everybody who may read them. */
const visibility = (metricName: string) => ({
  cloudWatchMetricsEnabled: true,
  metricName,
  sampledRequestsEnabled: false,
});
