import { beforeEach, describe, expect, it } from 'vitest';
import { publishNextVersion } from '../../lambdas/pipeline/publish-workflow.ts';
import { Workflow } from '../../lambdas/workflow/workflow.ts';
import { CountingIds } from '../fakes/counting-ids.ts';
import { FakeClock, STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';

const workflow = (description: string) =>
  Workflow.parse({ name: 'example', description, steps: [{ id: 'a', tool: 'transform' }] });

let definitions: MemoryDefinitions;
beforeEach(() => {
  definitions = new MemoryDefinitions();
});
const clock = new FakeClock();
const publish = (description: string, author = 'olivia') =>
  publishNextVersion({ definitions, clock, ids: new CountingIds() }, 'acme', workflow(description), author);

describe('publishing', () => {
  it('gives each change the next version, with author and time', async () => {
    expect(await publish('one')).toEqual({ version: 1, isNew: true });
    expect(await publish('two', 'adam')).toEqual({ version: 2, isNew: true });
    expect(await definitions.workflow('acme', 'example', 2)).toEqual({
      ...workflow('two'),
      author: 'adam',
      publishedAt: STORY_BEGINS_AT,
    });
    expect(await definitions.workflow('acme', 'example', 1)).toMatchObject({ description: 'one' });
  });

  it('the newest version again changes nothing, regardless of the author', async () => {
    await publish('one');
    expect(await publish('one', 'adam')).toEqual({ version: 1, isNew: false });
    expect(await definitions.workflow('acme', 'example', 1)).toMatchObject({ author: 'olivia' });
  });

  it('an older version again creates a new version', async () => {
    await publish('one');
    await publish('two');
    expect(await publish('one')).toEqual({ version: 3, isNew: true });
  });

  it('concurrently gives every change its own version', async () => {
    const published = await Promise.all(['a', 'b', 'c', 'd', 'd'].map((description) => publish(description)));
    const versions = published.slice(0, 4).map((each) => each?.version);
    expect(versions.toSorted()).toEqual([1, 2, 3, 4]);
    for (const [index, each] of published.entries()) {
      const stored = await definitions.workflow('acme', 'example', each?.version ?? 0);
      expect(stored?.description).toBe(['a', 'b', 'c', 'd', 'd'][index]);
    }
  });

  it('gives up if concurrent publications always win', async () => {
    const publishAs = definitions.publishWorkflow.bind(definitions);
    definitions.publishWorkflow = async (tenant, mine, version) => {
      await publishAs(tenant, workflow(`other ${version}`), version);
      await publishAs(tenant, mine, version);
    };
    expect(await publish('mine')).toBeUndefined();
  });
});
