import {
  ConditionalCheckFailedException,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
} from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type { Person } from '../approval/people.ts';
import { NO_TENANT_POLICIES, type TenantPolicies } from '../policy/policy.ts';
import { canonicalJson } from '../run/canonical-json.ts';
import { NO_SETTINGS, type TenantSettings } from '../run/caps.ts';
import { docOf, type Item, toItem } from '../run/dynamo-items.ts';
import * as keys from '../run/dynamo-keys.ts';
import { CountersignError } from '../run/errors.ts';
import type { PublishedWorkflow } from '../workflow/workflow.ts';
import type { Automation, Connection, Definitions } from './definitions.ts';

export class DynamoDefinitions implements Definitions {
  readonly #client: DynamoDBClient;
  readonly #table: string;

  constructor(client: DynamoDBClient, table: string) {
    this.#client = client;
    this.#table = table;
  }

  automations(tenant: string): Promise<Automation[]> {
    return this.#list(tenant, keys.AUTOMATION_PREFIX);
  }

  people(tenant: string): Promise<Person[]> {
    return this.#list(tenant, keys.PERSON_PREFIX);
  }

  async policies(tenant: string): Promise<TenantPolicies> {
    return (await this.#get<TenantPolicies>(keys.policiesKey(tenant))) ?? NO_TENANT_POLICIES;
  }

  async settings(tenant: string): Promise<TenantSettings> {
    return (await this.#get<TenantSettings>(keys.settingsKey(tenant))) ?? NO_SETTINGS;
  }

  workflow(tenant: string, name: string, version: number): Promise<PublishedWorkflow | undefined> {
    return this.#get(keys.workflowKey(tenant, name, version));
  }

  async latestVersion(tenant: string, name: string): Promise<number> {
    const { Items = [] } = await this.#client.send(
      new QueryCommand({
        TableName: this.#table,
        ...this.#rowsUnder(tenant, keys.workflowPrefix(name)),
        ConsistentRead: true,
        ScanIndexForward: false,
        Limit: 1,
      }),
    );
    return Number(Items[0]?.sk?.S?.split('#').at(-1) ?? 0);
  }

  connection(tenant: string, name: string): Promise<Connection | undefined> {
    return this.#get(keys.connectionKey(tenant, name));
  }

  saveSettings(tenant: string, settings: TenantSettings): Promise<void> {
    return this.#put(toItem(keys.settingsKey(tenant), settings));
  }

  saveAutomation(tenant: string, automation: Automation): Promise<void> {
    return this.#put(toItem(keys.automationKey(tenant, automation.name), automation));
  }

  saveConnection(tenant: string, connection: Connection): Promise<void> {
    return this.#put(toItem(keys.connectionKey(tenant, connection.name), connection));
  }

  savePolicies(tenant: string, policies: TenantPolicies): Promise<void> {
    return this.#put(toItem(keys.policiesKey(tenant), policies));
  }

  savePerson(tenant: string, person: Person): Promise<void> {
    return this.#put(toItem(keys.personKey(tenant, person.id), person));
  }

  async publishWorkflow(tenant: string, workflow: PublishedWorkflow, version: number): Promise<void> {
    const key = keys.workflowKey(tenant, workflow.name, version);
    try {
      await this.#put(toItem(key, workflow), 'attribute_not_exists(pk)');
    } catch (error) {
      if (!(error instanceof ConditionalCheckFailedException)) throw error;
      if (canonicalJson(await this.#get(key)) === canonicalJson(JSON.parse(JSON.stringify(workflow)))) return;
      throw new CountersignError(
        'WORKFLOW_INVALID',
        `version ${version} of ${workflow.name} is published and differs; publish the change as version ${version + 1}`,
        { cause: error },
      );
    }
  }

  async #list<T>(tenant: string, prefix: string): Promise<T[]> {
    const found: T[] = [];
    let ExclusiveStartKey: Item | undefined;
    do {
      const page = await this.#client.send(
        new QueryCommand({ TableName: this.#table, ...this.#rowsUnder(tenant, prefix), ExclusiveStartKey }),
      );
      found.push(...(page.Items ?? []).map((item) => docOf<T>(item)));
      ExclusiveStartKey = page.LastEvaluatedKey;
    } while (ExclusiveStartKey);
    return found;
  }

  #rowsUnder(tenant: string, prefix: string) {
    return {
      KeyConditionExpression: 'pk = :pk AND begins_with(sk, :prefix)',
      ExpressionAttributeValues: marshall({ ':pk': keys.tenantItems(tenant), ':prefix': prefix }),
    };
  }

  async #get<T>(key: keys.Key): Promise<T | undefined> {
    const { Item } = await this.#client.send(
      new GetItemCommand({ TableName: this.#table, Key: marshall(key), ConsistentRead: true }),
    );
    return Item && docOf<T>(Item);
  }

  async #put(item: Item, ConditionExpression?: string): Promise<void> {
    await this.#client.send(new PutItemCommand({ TableName: this.#table, Item: item, ConditionExpression }));
  }
}
