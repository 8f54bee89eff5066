import type { Clock, Ids } from '../entry/ports.ts';
import { hashOf } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import type { PublishedWorkflow } from '../workflow/workflow.ts';
import { changeAuthor } from './definition-changes.ts';
import type { Definitions } from './definitions.ts';

/** An attempt fails if a concurrent publication took the version number. */
const ATTEMPTS_MAX = 10;

interface Publisher {
  definitions: Pick<Definitions, 'workflowVersions' | 'publishWorkflow'>;
  clock: Clock;
  ids: Ids;
}

/** Publishes the next version unless it equals the newest. Returns nothing if too many concurrent publications win. */
export async function publishNextVersion(
  { definitions, clock, ids }: Publisher,
  tenant: string,
  workflow: PublishedWorkflow,
  author: string,
): Promise<{ version: number; isNew: boolean } | undefined> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const [newest] = await definitions.workflowVersions(tenant, workflow.name, { limit: 1 });
    if (newest && isSameWorkflow(newest.workflow, workflow)) return { version: newest.version, isNew: false };
    const version = (newest?.version ?? 0) + 1;
    try {
      const by = changeAuthor({ clock, ids }, author);
      await definitions.publishWorkflow(tenant, { ...workflow, author, publishedAt: by.at }, version, by);
      return { version, isNew: true };
    } catch (error) {
      if (!(error instanceof CountersignError)) throw error;
    }
  }
  return undefined;
}

/** Ignores who published the workflow and when, and how the file is written. */
export const isSameWorkflow = (a: PublishedWorkflow, b: PublishedWorkflow): boolean =>
  contentHash(a) === contentHash(b);

function contentHash({
  author: _author,
  publishedAt: _publishedAt,
  source: _source,
  ...content
}: PublishedWorkflow): string {
  return hashOf(content);
}
