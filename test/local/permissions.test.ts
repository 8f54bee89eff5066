import { afterEach, expect, it } from 'vitest';
import type { Assembly } from '../../local/synthesize.ts';
import { publish } from './definitions.ts';
import { incident } from './deliveries.ts';
import { isTerminal } from './host-client.ts';
import { labelWrites } from './seen-writes.ts';
import { startTestHost, type TestHost } from './test-host.ts';

const DAY_MS = 24 * 3_600_000;
let host: TestHost;

afterEach(() => host.stop());

interface Statement {
  Action: string | string[];
  Condition?: { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': string[] } };
}

/** The same assembly, in which this function's role may no longer write rows of this kind. */
function withoutPutOf(rows: string, functionStart: string): (assembly: Assembly) => Assembly {
  return (assembly) => {
    const template = structuredClone(assembly.template);
    const policies = Object.entries(template.Resources ?? {}).filter(
      ([logicalId, { Type }]) => Type === 'AWS::IAM::Policy' && logicalId.startsWith(functionStart),
    );
    const statements = policies.flatMap(
      ([, { Properties = {} }]) => (Properties.PolicyDocument as { Statement: Statement[] }).Statement,
    );
    const puts = statements.filter(({ Action }) => [Action].flat().includes('dynamodb:PutItem'));
    const conditions = puts.flatMap(({ Condition }) => Condition?.['ForAllValues:StringLike'] ?? []);
    const before = JSON.stringify(conditions);
    for (const condition of conditions) {
      condition['dynamodb:LeadingKeys'] = condition['dynamodb:LeadingKeys'].filter((key) => key !== `${rows}#*`);
    }
    if (JSON.stringify(conditions) === before) throw new Error(`${functionStart} never could write ${rows}`);
    return { ...assembly, template };
  };
}

it('a worker whose role lacks a grant makes no write, and the log names the grant', async () => {
  host = await startTestHost({ change: withoutPutOf('RECEIPT', 'WorkerStep') });
  const runId = await host.openIssue(1);
  await host.idle();
  expect((await host.run(runId)).status).toBe('queued');
  expect(labelWrites(await host.calls(), 1)).toBe(0);
  const denials = host.log.filter((line) => line.includes('denied:'));
  expect(denials[0]).toMatch(/WorkerStep\w+ is not authorized to perform dynamodb:PutItem on \S+:table\/\S+:.*RECEIPT/);
});

it('a webhook whose run cannot be written is not acknowledged', async () => {
  host = await startTestHost({ change: withoutPutOf('IDEM', 'IntakeGithub') });
  const { status } = await host.sendGithub({ action: 'opened', issue: { number: 1, title: 'x' } });
  expect(status).toBe(500);
  expect(host.log.some((line) => /denied: IntakeGithub\w+ .* dynamodb:PutItem/.test(line))).toBe(true);
  expect(await host.allRuns()).toEqual([]);
});

/** What CDK's own constructs grant and AWS asks for, though nothing here can be seen to use it. */
const GRANTED_BY_CDK = {
  'sqs:ChangeMessageVisibility': 'an event source mapping shows messages again after a failed batch',
  'sqs:GetQueueUrl': 'part of what CDK grants a consumer of a queue',
};

it('no role holds a grant that the whole path, its failures included, does not need', async () => {
  host = await startTestHost();
  await publish(host, { name: 'gated', event: 'release.published', steps: [{ id: 'gate', tool: 'approval' }] });

  // The straight path, from both sources, and everything one can ask the API.
  const issueRun = await host.openIssue(1);
  await host.waitForRun(await host.fileIncident(incident('that uses every grant')));
  await host.waitForRun(issueRun);
  await host.allRuns();
  await host.api('/runs?status=succeeded');
  await host.api(`/runs/${issueRun}/events`);

  // A target that asks to slow down, and a gate.
  await host.simulatedFault({ system: 'github', method: 'POST', kind: 'status', status: 429, retryAfterSeconds: 1 });
  await host.letTimePassUntil([await host.openIssue(5)], isTerminal);
  await host.sendGithub({ action: 'published' }, { event: 'release' });
  await host.idle();

  // A worker that dies after its write, whose message is lost, and whose promised seal and approval nobody hears of.
  await host.fault({
    function: 'WorkerStep',
    service: 'dynamodb',
    operation: 'TransactWriteItems',
    nth: 2,
    kind: 'crash_before',
  });
  const crashed = await host.openIssue(2);
  await host.letTimePassUntil([crashed], isTerminal);
  await host.fault({ function: 'WorkerStep', service: 'states', operation: 'StartExecution', kind: 'error', times: 3 });
  await host.fault({
    function: 'WorkerStep',
    service: 'sqs',
    operation: 'SendMessage',
    kind: 'error',
    times: 'always',
  });
  const { body } = await host.sendGithub({ action: 'published' }, { event: 'release' });
  const unsealed = await host.openIssue(3);
  await host.letTimePassUntil([unsealed], ({ evidence }) => evidence !== null);
  await host.clearFaults();

  // Commits whose replies are lost, and a seal that is asked for again.
  await host.fault({
    function: 'WorkerStep',
    service: 'dynamodb',
    operation: 'TransactWriteItems',
    kind: 'lost_reply',
    times: 3,
  });
  await host.fault({
    function: 'EvidenceVaultSeal',
    service: 'dynamodb',
    operation: 'TransactWriteItems',
    kind: 'crash_before',
  });
  await host.letTimePassUntil([await host.openIssue(4)], ({ evidence }) => evidence !== null);
  await host.clearFaults();

  // An approval that nobody answers.
  await host.advance(DAY_MS);
  await host.letTimePassUntil(body.runIds, isTerminal);

  const unused = (await host.unusedGrants()).filter(({ action }) => !(action in GRANTED_BY_CDK));
  expect(unused).toEqual([]);
});
