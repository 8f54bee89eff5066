const letters = (count: number, from: string) =>
  Array.from({ length: count }, (_, at) => from.repeat(40 - String(at).length) + at);
const hex = (at: number) => at.toString(16).padStart(17, '0');

/** The longest name that a stage can have. */
export const STAGE = 's'.repeat(40);

const DOMAIN = `${'countersign-of-a-company-with-a-long-name.'.repeat(3)}example.com`;

/** The largest stage that the settings allow, with everything that can be switched on. */
export const LARGEST = {
  kind: 'prod',
  tenants: letters(20, 't'),
  formerTenants: letters(20, 'f'),
  issuers: Array.from({ length: 10 }, (_, at) => ({
    name: `issuer-${at}`,
    issuer: `https://login.example.com/tenants/${'i'.repeat(20)}${at}`,
    audience: `countersign-${'a'.repeat(20)}-${at}`,
    tenant: letters(20, 't')[at],
  })),
  console: true,
  liveFeed: true,
  exports: ['siem', 'artifacts'],
  logLevel: 'DEBUG',
  traces: 'xray',
  traceUrl: `https://traces.example.com/${'t'.repeat(450)}/{traceId}`,
  alarmEmails: Array.from({ length: 10 }, (_, at) => `on-call-${at}@example.com`),
  alarmUrls: Array.from({ length: 5 }, (_, at) => `https://pages.example.com/${'u'.repeat(150)}${at}`),
  runbookUrl: `https://wiki.example.com/${'r'.repeat(250)}`,
  domain: {
    name: DOMAIN,
    certificateArn: 'arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012',
    hostedZone: { id: 'Z0123456789ABCDEFGHIJ', name: 'example.com' },
  },
  firewall: {
    webAclArn: `arn:aws:wafv2:us-east-1:123456789012:global/webacl/countersign-${STAGE}/12345678-1234-1234-1234-123456789012`,
  },
  vpc: {
    id: `vpc-${hex(1)}`,
    subnetIds: Array.from({ length: 6 }, (_, at) => `subnet-${hex(at)}`),
    securityGroupIds: Array.from({ length: 5 }, (_, at) => `sg-${hex(at)}`),
    endpoints: true,
    routeTableIds: Array.from({ length: 16 }, (_, at) => `rtb-${hex(at)}`),
  },
  models: Array.from({ length: 20 }, (_, at) => `eu.anthropic.claude-some-long-model-name-20260101-v${at}:0`),
  evidenceRetentionDays: 36_500,
  finishedRunRetentionDays: 36_500,
  evidenceKeys: Array.from({ length: 10 }, (_, at) => ({
    name: `${'k'.repeat(30)}${at}`,
    ...(at < 9 && { retiredOn: `20${20 + at}-01-01` }),
  })),
};
