import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { toItem } from '../run/dynamo/dynamo-items.ts';
import * as keys from '../run/dynamo/dynamo-keys.ts';
import { DynamoRows } from '../run/dynamo/dynamo-rows.ts';
import type { PlanStore, SavedPlan } from './plan-store.ts';

export class DynamoPlanStore implements PlanStore {
  readonly #rows: DynamoRows;

  constructor(client: DynamoDBClient, table: string) {
    this.#rows = new DynamoRows(client, table);
  }

  async savePlan(tenant: string, saved: SavedPlan): Promise<void> {
    const deleteAfter = Math.ceil(Date.parse(saved.expiresAt) / 1000);
    await this.#rows.save(
      toItem(keys.planKey(tenant, saved.plan.planHash), saved, { [keys.TTL_ATTRIBUTE]: deleteAfter }),
    );
  }

  savedPlan(tenant: string, planHash: string): Promise<SavedPlan | undefined> {
    return this.#rows.get(keys.planKey(tenant, planHash));
  }
}
