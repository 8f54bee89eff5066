import { CfnOutput, Stack } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { LOGGED } from '../lambdas/entry/environment.ts';
import { WORKER_TIMEOUT_MS } from '../lambdas/run/lease.ts';
import { Alarms } from './alarms.ts';
import { Api } from './api.ts';
import { ApprovalFlow } from './approval-flow.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { DefinitionsApi } from './definitions-api.ts';
import { EvidenceApi } from './evidence-api.ts';
import { EvidenceLog } from './evidence-log.ts';
import { EvidenceVault } from './evidence-vault.ts';
import { FrontDoor } from './front-door.ts';
import { Intake } from './intake.ts';
import { seconds } from './node-function.ts';
import { PolicyApi } from './policy-api.ts';
import { RunTable } from './run-table.ts';
import { Slack } from './slack.ts';
import type { StageConfig } from './stage-config.ts';
import { Sweep } from './sweep.ts';
import { TenantSecrets } from './tenant-secrets.ts';
import { WorkQueue } from './work-queue.ts';
import { Worker } from './worker.ts';

/** READ FIRST. One tenant stage, in the order in which data flows through it. */
export class CountersignStack extends Stack {
  constructor(scope: Construct, { config, bundles }: { config: StageConfig; bundles: FunctionBundles }) {
    super(scope, 'Countersign', {
      stackName: `countersign-${config.stage}`,
      description: `Countersign, stage ${config.stage}: governed automation for ${config.tenants.join(', ')}`,
      terminationProtection: config.kind === 'prod',
    });

    // Everything durable about runs. Whoever changes a run does it by a conditional write here.
    const runTable = new RunTable(this, 'RunTable', config);

    // A signed webhook comes in, becomes runs in one transaction, and a message says "look at this run".
    const door = new FrontDoor(this, 'FrontDoor');
    const stepQueue = new WorkQueue(this, 'StepQueue', { consumerTimeout: seconds(WORKER_TIMEOUT_MS / 1000) });
    const webhookSecrets = new TenantSecrets(this, 'WebhookSecrets', {
      ...config,
      purpose: 'webhook-signing',
      description: 'Secrets that webhook senders sign with: {"github": [...], "servicenow": [...], "slack": [...]}',
      generatedEntry: 'github',
    });
    const alarms = new Alarms(this, 'Alarms');
    new Intake(this, 'Intake', { alarms, bundles, door, runTable, stepQueue, webhookSecrets });

    // Where every run ends.
    const evidence = new EvidenceVault(this, 'EvidenceVault', { bundles, runTable, config });

    // Where a run may have to wait for people, who are told in Slack.
    const connectionSecrets = new TenantSecrets(this, 'ConnectionSecrets', {
      ...config,
      purpose: 'connections',
      description: 'Credentials of connections: {"servicenow": {...}, "github": {...}, "slack": {...}, ...}',
      generatedEntry: 'unused',
    });
    const approvals = new ApprovalFlow(this, 'ApprovalFlow', { bundles, runTable, stepQueue, connectionSecrets });

    // The worker goes from step to step: policy, lease and intent, the write at the target, the receipt.
    const worker = new Worker(this, 'Worker', {
      bundles,
      config,
      runTable,
      stepQueue,
      connectionSecrets,
      approvals,
      evidence,
      door,
    });

    alarms.deadLetters('StepDeadLetters', stepQueue);
    alarms.deadLetters('EvidenceDeadLetters', evidence.sealQueue);
    alarms.deadLetters('ApprovalDeadLetters', approvals.queue);

    // The net under all of it, and the window into it.
    const sweep = new Sweep(this, 'Sweep', { bundles, runTable, stepQueue, approvals, evidence });
    alarms.said('PromiseNotKept', sweep.sweeper, LOGGED.promiseNotKept, 'A promised effect did not happen');
    alarms.said('PolicyUndecided', worker.step, LOGGED.policyUndecided, 'Policy could not decide');
    alarms.said('CardNotUpdated', approvals.follow, LOGGED.cardNotUpdated, 'A card could not be updated');
    const api = new Api(this, 'Api', { bundles, door, runTable, worker, stepQueue, evidence, approvals });

    // What people decide in Slack, and what they define: workflows, automations, policies.
    new Slack(this, 'Slack', { bundles, door, runTable, worker, webhookSecrets, connectionSecrets });
    const behindKeys = { bundles, door, runTable, authorizer: api.authorizer, cursorSecret: api.cursorSecret };
    new DefinitionsApi(this, 'DefinitionsApi', { ...behindKeys, config });
    new PolicyApi(this, 'PolicyApi', behindKeys);

    // What an auditor takes away, and what lets outsiders check it.
    new EvidenceApi(this, 'EvidenceApi', { ...behindKeys, evidence });
    const evidenceLog = new EvidenceLog(this, 'EvidenceLog', { bundles, config, door, runTable, evidence });
    alarms.failing('EvidenceLogFailing', evidenceLog.closeDays, 'The evidence log of a day is not closed');

    new CfnOutput(this, 'Url', { value: door.api.apiEndpoint });
  }
}
