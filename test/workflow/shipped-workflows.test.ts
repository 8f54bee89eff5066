import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { render } from '../../lambdas/workflow/expressions/expressions.ts';
import { parseWorkflow } from '../../lambdas/workflow/parse-workflow.ts';
import { OwnThreadExpressions } from '../fakes/own-thread-expressions.ts';

const SHIPPED = join(import.meta.dirname, '..', '..', 'workflows');
const shipped = (file: string) => parseWorkflow(readFileSync(join(SHIPPED, file), 'utf8'), file);

it.each(readdirSync(SHIPPED).filter((name) => name.endsWith('.yaml')))(
  '%s is valid and has the name of its file',
  (file) => {
    expect(shipped(file).name).toBe(file.replace('.yaml', ''));
  },
);

describe('triage-incident', () => {
  const { steps } = shipped('triage-incident.yaml');
  const trigger = { sysId: 'x', number: 'INC1', priority: '1', payload: { record: { category: 'database' } } };
  /** What a step is given once the others have given these. */
  const given = (id: string, outputs: Record<string, unknown>) =>
    render(
      {
        expressions: new OwnThreadExpressions(() => 0),
        tenant: 'acme',
        context: {
          trigger,
          enrichment: { title: 'Orders are slow' },
          steps: Object.fromEntries(Object.entries(outputs).map(([name, output]) => [name, { output }])),
          run: { id: 'run_1' },
        },
      },
      steps.find((step) => step.id === id)?.with,
    );
  const NETWORK = '19bba1f613c636a33e096de45697b880';
  const DATABASE = '7db8c0366047d2b436c8dcd13dde2bf8';

  it.each([
    [DATABASE, 'Database'],
    // Chosen by the approver.
    [NETWORK, 'Network Operations'],
    ['of-no-list', 'of-no-list'],
  ])('reports the written group, %s, regardless of the proposed one', async (written, name) => {
    const route = await given('route', {});
    expect(route).toMatchObject({ group: DATABASE });
    const routed = await given('routed', { route, assign: { fields: { assignment_group: written } } });
    expect(await given('note', { routed })).toMatchObject({ note: expect.stringContaining(`Routed to ${name} by`) });
    expect(await given('post', { routed })).toMatchObject({ text: `INC1: Orders are slow → ${name}` });
  });
});
