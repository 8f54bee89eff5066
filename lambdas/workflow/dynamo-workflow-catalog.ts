import { type DynamoDBClient, QueryCommand } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import { docOf, type Item } from '../run/dynamo-items.ts';
import { tenantItems, workflowKey, workflowPrefix } from '../run/dynamo-keys.ts';
import type { PublishedWorkflow } from './workflow.ts';
import type { PublishedVersion, WorkflowCatalog } from './workflow-catalog.ts';

/** Sorts after every digit and every letter of a name. */
const AFTER_ALL = '~';

interface Range {
  from: string;
  to: string;
  newestFirst: boolean;
  limit: number;
}

/** Versions are rows side by side; the newest of each is found by leaping from name to name. */
export class DynamoWorkflowCatalog implements WorkflowCatalog {
  readonly #client: DynamoDBClient;
  readonly #table: string;

  constructor(client: DynamoDBClient, table: string) {
    this.#client = client;
    this.#table = table;
  }

  async newest(tenant: string, { after, limit }: { after?: string; limit: number }): Promise<PublishedVersion[]> {
    const names: string[] = [];
    for (let last = after; names.length < limit; ) {
      const name = await this.#nameAfter(tenant, last);
      if (name === undefined) break;
      names.push(name);
      last = name;
    }
    const found = await Promise.all(names.map((name) => this.versions(tenant, name, { limit: 1 })));
    return found.flat();
  }

  async versions(
    tenant: string,
    name: string,
    { before, limit }: { before?: number; limit: number },
  ): Promise<PublishedVersion[]> {
    const from = workflowPrefix(name);
    const to = before === undefined ? `${from}${AFTER_ALL}` : workflowKey(tenant, name, before - 1).sk;
    return (await this.#rows(tenant, { from, to, newestFirst: true, limit })).map((row) => ({
      version: versionOf(row),
      workflow: docOf<PublishedWorkflow>(row),
    }));
  }

  async #nameAfter(tenant: string, name: string | undefined): Promise<string | undefined> {
    const from = name === undefined ? workflowPrefix('') : `${workflowPrefix(name)}${AFTER_ALL}`;
    const to = workflowPrefix(AFTER_ALL);
    const [row] = await this.#rows(tenant, { from, to, newestFirst: false, limit: 1 });
    return row && docOf<PublishedWorkflow>(row).name;
  }

  /** A page of large workflows is cut short before the limit: the rest is asked for. */
  async #rows(tenant: string, { from, to, newestFirst, limit }: Range): Promise<Item[]> {
    const found: Item[] = [];
    let ExclusiveStartKey: Item | undefined;
    do {
      const { Items = [], LastEvaluatedKey } = await this.#client.send(
        new QueryCommand({
          TableName: this.#table,
          KeyConditionExpression: 'pk = :pk AND sk BETWEEN :from AND :to',
          ExpressionAttributeValues: marshall({ ':pk': tenantItems(tenant), ':from': from, ':to': to }),
          ConsistentRead: true,
          ScanIndexForward: !newestFirst,
          Limit: limit - found.length,
          ExclusiveStartKey,
        }),
      );
      found.push(...Items);
      ExclusiveStartKey = LastEvaluatedKey;
    } while (ExclusiveStartKey && found.length < limit);
    return found;
  }
}

const versionOf = (row: Item): number => Number(row.sk?.S?.split('#').at(-1));
