import { readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type * as z from 'zod';
import { CompleteRequest } from '../lambdas/agents/protocol.ts';
import { writePrivate } from './agent-folder.ts';

export type CommandReport = z.infer<typeof CompleteRequest>;

/** Results that the runtime has not yet confirmed. They survive a restart of the agent. */
export class ResultSpool {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  put(report: CommandReport): void {
    writePrivate(this.#file(report.assignment_id), JSON.stringify(report));
  }

  all(): CommandReport[] {
    const files = readdirSync(this.#folder).filter((name) => name.endsWith('.json'));
    return files.flatMap((name) => {
      try {
        return [CompleteRequest.parse(JSON.parse(readFileSync(join(this.#folder, name), 'utf8')))];
      } catch {
        // Damaged, or of another version: it cannot be sent, and must not stop the agent.
        this.#setAside(join(this.#folder, name));
        return [];
      }
    });
  }

  remove(assignmentId: string): void {
    rmSync(this.#file(assignmentId), { force: true });
  }

  /** The runtime refuses it. The file stays for the operator. */
  refused(assignmentId: string): void {
    this.#setAside(this.#file(assignmentId));
  }

  #setAside(file: string): void {
    renameSync(file, `${file}.refused`);
  }

  #file(assignmentId: string): string {
    return join(this.#folder, `${encodeURIComponent(assignmentId)}.json`);
  }
}
