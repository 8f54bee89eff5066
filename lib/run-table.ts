import { RemovalPolicy, Validations } from 'aws-cdk-lib';
import { AttributeType, Billing, ProjectionType, StreamViewType, TableV2 } from 'aws-cdk-lib/aws-dynamodb';
import { Construct } from 'constructs';
import { INDEXES, type RowKind, TTL_ATTRIBUTE } from '../lambdas/run/dynamo/dynamo-keys.ts';
import type { NodeFunction } from './node-function.ts';
import type { StageConfig } from './stage-config.ts';

type Action = 'GetItem' | 'BatchGetItem' | 'Query' | 'PutItem' | 'UpdateItem' | 'DeleteItem' | 'ConditionCheckItem';
type Index = keyof typeof INDEXES;

/** The table of runs, steps, commits, receipts, outbox entries and definitions. Its conditional writes decide every race. */
export class RunTable extends Construct {
  readonly table: TableV2;

  constructor(scope: Construct, id: string, { kind, liveFeed }: StageConfig) {
    super(scope, id);
    const prod = kind === 'prod';
    this.table = new TableV2(this, 'Table', {
      partitionKey: { name: 'pk', type: AttributeType.STRING },
      sortKey: { name: 'sk', type: AttributeType.STRING },
      billing: Billing.onDemand(),
      globalSecondaryIndexes: Object.values(INDEXES).map((index) => ({
        indexName: index.name,
        partitionKey: { name: index.partition, type: AttributeType.STRING },
        sortKey: { name: index.sort, type: AttributeType.STRING },
        // Keys only: readers read the row itself, and commits do not pay for copies of their rows.
        projectionType: ProjectionType.KEYS_ONLY,
      })),
      ...(liveFeed && { dynamoStream: StreamViewType.NEW_IMAGE }),
      timeToLiveAttribute: TTL_ATTRIBUTE,
      deletionProtection: prod,
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: prod },
      removalPolicy: prod ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
    });
    if (!prod) {
      Validations.of(this.table).acknowledge({
        id: 'AwsSolutions-DDB3',
        reason: 'Only prod stages need point-in-time recovery; the data of other stages can be created again.',
      });
    }
  }

  /** The ARN of the stream of new rows, which exists with the live feed. */
  get stream(): string {
    const { tableStreamArn } = this.table;
    if (tableStreamArn === undefined) throw new Error('the table has a stream only with the live feed');
    return tableStreamArn;
  }

  /** Allows actions on these kinds of rows only: the permission includes the prefix of the partition key. */
  allow(to: NodeFunction, actions: Action[], rows: RowKind[]): void {
    to.allow(
      actions.map((action) => `dynamodb:${action}`),
      [this.table.tableArn],
      { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': rows.map((row) => `${row}#*`) } },
    );
  }

  /** Allows commits of run changes, with their outbox entries and slots. */
  allowCommits(to: NodeFunction, { concurrencyKeys = true } = {}): void {
    this.allow(to, ['Query'], ['RUN']);
    this.allow(to, ['GetItem'], ['RUN', 'TENANT']);
    this.allow(to, ['BatchGetItem'], ['RUN', 'RECEIPT', 'CAPS']);
    this.allow(to, ['PutItem'], ['RUN', 'OUTBOX']);
    this.allow(to, ['UpdateItem'], ['CAPS']);
    if (concurrencyKeys) this.allow(to, ['DeleteItem'], ['LOCK']);
    // To start the run that has waited longest when a slot becomes free.
    this.allowIndexQuery(to, 'byStatus');
  }

  allowIndexQuery(to: NodeFunction, ...indexes: Index[]): void {
    to.allow(
      ['dynamodb:Query'],
      indexes.map((index) => `${this.table.tableArn}/index/${INDEXES[index].name}`),
    );
  }
}
