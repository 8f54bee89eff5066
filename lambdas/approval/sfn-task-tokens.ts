import {
  InvalidToken,
  SendTaskSuccessCommand,
  type SFNClient,
  TaskDoesNotExist,
  TaskTimedOut,
} from '@aws-sdk/client-sfn';
import type { TaskTokens } from './publish-decision.ts';

/** The execution was woken before, or no longer waits. The decision is stored in DynamoDB, so nothing is left to do. */
const NOTHING_WAITS = [TaskTimedOut, TaskDoesNotExist, InvalidToken];

export class SfnTaskTokens implements TaskTokens {
  readonly #client: SFNClient;

  constructor(client: SFNClient) {
    this.#client = client;
  }

  async complete(taskToken: string, decision: Parameters<TaskTokens['complete']>[1]): Promise<void> {
    await this.#client
      .send(new SendTaskSuccessCommand({ taskToken, output: JSON.stringify(decision) }))
      .catch((error: unknown) => {
        if (!NOTHING_WAITS.some((kind) => error instanceof kind)) throw error;
      });
  }
}
