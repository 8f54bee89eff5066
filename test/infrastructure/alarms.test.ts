import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { LOGGED } from '../../lambdas/entry/environment.ts';
import { readAssembly } from '../../local/synthesize.ts';

const runbook = readFileSync(join(import.meta.dirname, '..', '..', 'RUNBOOK.md'), 'utf8');
const { template } = readAssembly(inject('assemblies').local);
const resources = Object.values(template.Resources ?? {});
const alarms = resources.filter(({ Type }) => Type === 'AWS::CloudWatch::Alarm');

it('every alarm leads to a heading of the runbook that is there', () => {
  expect(alarms.length).toBeGreaterThan(0);
  for (const { Properties } of alarms) {
    const heading = /^RUNBOOK\.md: (.+)$/.exec(String(Properties?.AlarmDescription))?.[1];
    expect(runbook.split('\n')).toContain(`## ${heading}`);
  }
});

it('a delivery that comes again with another body, what nobody may miss in a log, and a dead letter of any queue raise an alarm', () => {
  const filters = resources.filter(({ Type }) => Type === 'AWS::Logs::MetricFilter');
  expect(filters.map(({ Properties }) => Properties?.FilterPattern).sort()).toEqual([
    '{ $.error.name = "IDEMPOTENCY_CONFLICT" }',
    '{ $.error.name = "IDEMPOTENCY_CONFLICT" }',
    ...Object.values(LOGGED)
      .map((sentence) => `{ $.message = "${sentence}" }`)
      .sort(),
  ]);
  const deadLetterQueues = resources.filter(({ Properties }) => Properties?.MessageRetentionPeriod === 14 * 24 * 3600);
  const onQueues = alarms.filter(({ Properties }) => Properties?.MetricName === 'ApproximateNumberOfMessagesVisible');
  expect(onQueues).toHaveLength(deadLetterQueues.length);
});
