import { beforeEach, describe, expect, it } from 'vitest';
import { publishNextVersion } from '../../lambdas/workflow/publish-workflow.ts';
import { Workflow } from '../../lambdas/workflow/workflow.ts';
import { FakeClock, STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { CataloguedDefinitions } from './catalogued-definitions.ts';
import { describeWorkflowCatalogContract } from './workflow-catalog-contract.ts';

describeWorkflowCatalogContract('memory', async () => {
  const definitions = new CataloguedDefinitions();
  return { definitions, catalog: definitions };
});

const workflow = (description: string) =>
  Workflow.parse({ name: 'example', description, steps: [{ id: 'a', tool: 'transform' }] });

let definitions: CataloguedDefinitions;
beforeEach(() => {
  definitions = new CataloguedDefinitions();
});
const clock = new FakeClock();
const publish = (description: string, author = 'olivia') =>
  publishNextVersion({ definitions, clock }, 'acme', workflow(description), author);

describe('publishing', () => {
  it('gives each change the next number, with its author and time', async () => {
    expect(await publish('one')).toEqual({ version: 1, isNew: true });
    expect(await publish('two', 'adam')).toEqual({ version: 2, isNew: true });
    expect(await definitions.workflow('acme', 'example', 2)).toEqual({
      ...workflow('two'),
      author: 'adam',
      publishedAt: STORY_BEGINS_AT,
    });
    expect(await definitions.workflow('acme', 'example', 1)).toMatchObject({ description: 'one' });
  });

  it('the newest version again changes nothing, whoever does it', async () => {
    await publish('one');
    expect(await publish('one', 'adam')).toEqual({ version: 1, isNew: false });
    expect(await definitions.workflow('acme', 'example', 1)).toMatchObject({ author: 'olivia' });
  });

  it('an older version again is a new one: the newest is what was published last', async () => {
    await publish('one');
    await publish('two');
    expect(await publish('one')).toEqual({ version: 3, isNew: true });
  });

  it('by several people at once gives every change a number of its own, and equal ones the same or their own', async () => {
    const published = await Promise.all(['a', 'b', 'c', 'd', 'd'].map((description) => publish(description)));
    const versions = published.slice(0, 4).map((each) => each?.version);
    expect(versions.toSorted()).toEqual([1, 2, 3, 4]);
    for (const [index, each] of published.entries()) {
      const stored = await definitions.workflow('acme', 'example', each?.version ?? 0);
      expect(stored?.description).toBe(['a', 'b', 'c', 'd', 'd'][index]);
    }
  });

  it('gives up when others are always faster', async () => {
    let latest = 0;
    definitions.latestVersion = async () => {
      latest += 1;
      await definitions.publishWorkflow('acme', workflow(`other ${latest}`), latest);
      return latest - 1;
    };
    expect(await publish('mine')).toBeUndefined();
  });
});
