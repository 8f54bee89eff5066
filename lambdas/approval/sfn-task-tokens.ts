import {
  InvalidToken,
  SendTaskSuccessCommand,
  type SFNClient,
  TaskDoesNotExist,
  TaskTimedOut,
} from '@aws-sdk/client-sfn';
import type { TaskTokens } from './publish-decision.ts';

/** Answered before, or given up waiting: what was decided stands in DynamoDB either way, so nothing is left to do. */
const NOBODY_WAITS = [TaskTimedOut, TaskDoesNotExist, InvalidToken];

export class SfnTaskTokens implements TaskTokens {
  readonly #client: SFNClient;

  constructor(client: SFNClient) {
    this.#client = client;
  }

  async answer(taskToken: string, decision: Parameters<TaskTokens['answer']>[1]): Promise<void> {
    await this.#client
      .send(new SendTaskSuccessCommand({ taskToken, output: JSON.stringify(decision) }))
      .catch((error: unknown) => {
        if (!NOBODY_WAITS.some((kind) => error instanceof kind)) throw error;
      });
  }
}
