/** List prices in USD, us-east-1. Their sources are the price pages of AWS, read in November 2026. */
const MILLION = 1_000_000;

export const PRICES = {
  dynamoDbWriteUnit: 0.625 / MILLION,
  dynamoDbReadUnit: 0.125 / MILLION,
  dynamoDbGigabyteMonth: 0.25,
  /** Each 64 KB of a request. A message group on a standard queue (fair queue) costs more. */
  sqsRequest: 0.4 / MILLION,
  sqsFairRequestSurcharge: 0.1 / MILLION,
  lambdaRequest: 0.2 / MILLION,
  lambdaArmGigabyteSecond: 0.0000133334,
  httpApiRequest: 1 / MILLION,
  webSocketMessage: 1 / MILLION,
  stepFunctionsTransition: 25 / MILLION,
  s3Put: 0.005 / 1_000,
  s3Get: 0.0004 / 1_000,
  kmsSymmetricRequest: 0.03 / 10_000,
  kmsSignature: 0.15 / 10_000,
  kmsKeyMonth: 1,
  secretsManagerRequest: 0.05 / 10_000,
  secretMonth: 0.4,
  logsGigabyte: 0.5,
  metricMonth: 0.3,
  alarmMonth: 0.1,
  dashboardMonth: 3,
  webAclMonth: 5,
  webAclRuleMonth: 1,
  /** Of one interface endpoint in one subnet: 0.01 an hour. */
  vpcEndpointMonth: 0.01 * 30 * 24,
} as const;

export const GIGABYTE = 1024 ** 3;

/** A million runs of five steps at the list prices of others. Those without `inclusive` do not include the compute. */
export const PEERS: readonly { name: string; usd: number; inclusive?: true; of: string }[] = [
  { name: 'AWS Lambda durable functions', usd: 48, of: '6 operations of 8.00 per million; 72 with an approval' },
  { name: 'Restate Cloud Starter', usd: 125, of: '7 actions; 75 with 5 million, then 25 per million' },
  { name: 'Step Functions Standard', usd: 150, of: '6 transitions of 25 per million' },
  { name: 'Inngest Pro', usd: 324, of: '6 executions; 99 with 1 million, then 50, then 25 per million' },
  { name: 'DBOS Conductor Pro', usd: 349, of: '6 checkpoints; 99 with 1 million, then 50 per million' },
  { name: 'Temporal Cloud Essentials', usd: 350, of: '6 actions; 100 with 1 million, then 50 per million' },
];
