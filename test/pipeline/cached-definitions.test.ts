import { beforeEach, describe, expect, it } from 'vitest';
import { CachedDefinitions } from '../../lambdas/pipeline/cached-definitions.ts';
import { Workflow } from '../../lambdas/workflow/workflow.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';
import { automation } from '../intake/intake-world.ts';

let clock: FakeClock;
let source: MemoryDefinitions;
let cached: CachedDefinitions;
beforeEach(() => {
  clock = new FakeClock();
  source = new MemoryDefinitions();
  cached = new CachedDefinitions(source, () => clock.now());
});

describe('definitions cached in a warm function', () => {
  it('show a changed automation within a minute', async () => {
    expect(await cached.automations('acme')).toEqual([]);
    await source.saveAutomation('acme', automation('new'));
    clock.advance(59_999);
    expect(await cached.automations('acme')).toEqual([]);
    clock.advance(1);
    expect(await cached.automations('acme')).toHaveLength(1);
  });

  it('find a new configuration at once, and a deleted one no more within a minute', async () => {
    const session = { provider: 'a2a' as const, url: 'https://agent.example.com', connection: 'agent' };
    const configuration = { name: 'bot', session, revision: 1 };
    expect(await cached.configuration('acme', 'bot')).toBeUndefined();
    await source.saveConfiguration('acme', configuration);
    expect(await cached.configuration('acme', 'bot')).toEqual(configuration);
    expect(await cached.configuration('globex', 'bot')).toBeUndefined();
    await source.deleteConfiguration('acme', configuration);
    clock.advance(59_999);
    expect(await cached.configuration('acme', 'bot')).toEqual(configuration);
    clock.advance(1);
    expect(await cached.configuration('acme', 'bot')).toBeUndefined();
  });

  it('are cached for each tenant', async () => {
    await source.saveAutomation('acme', automation('ours'));
    expect(await cached.automations('acme')).toHaveLength(1);
    expect(await cached.automations('globex')).toEqual([]);
  });

  it('do not cache a failed read: the next caller reads again', async () => {
    let down = true;
    const flaky = {
      automations: async () => (down ? Promise.reject(new Error('down')) : source.automations('acme')),
      sources: (tenant: string) => source.sources(tenant),
      workflow: () => Promise.resolve(undefined),
      settings: (tenant: string) => source.settings(tenant),
      people: (tenant: string) => source.people(tenant),
      profiles: (tenant: string) => source.profiles(tenant),
      configuration: (tenant: string, name: string) => source.configuration(tenant, name),
    };
    const keeping = new CachedDefinitions(flaky, () => clock.now());
    await expect(keeping.automations('acme')).rejects.toThrow('down');
    down = false;
    expect(await keeping.automations('acme')).toEqual([]);
  });

  it('find a workflow that is published after the first read', async () => {
    const workflow = Workflow.parse({ name: 'late', steps: [{ id: 'a', tool: 'transform' }] });
    expect(await cached.workflow('acme', 'late', 1)).toBeUndefined();
    await source.publishWorkflow('acme', workflow, 1);
    expect(await cached.workflow('acme', 'late', 1)).toEqual(workflow);
  });
});
