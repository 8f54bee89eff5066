import { CfnOutput, Stack } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { WORKER_TIMEOUT_MS } from '../lambdas/run/lease.ts';
import { Alarms } from './alarms.ts';
import { Api } from './api.ts';
import { ApprovalFlow } from './approval-flow.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { EvidenceVault } from './evidence-vault.ts';
import { FrontDoor } from './front-door.ts';
import { Intake } from './intake.ts';
import { seconds } from './node-function.ts';
import { RunTable } from './run-table.ts';
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
      description: 'Secrets that webhook senders sign with: {"github": [...], "servicenow": [...]}',
      generatedEntry: 'github',
    });
    const alarms = new Alarms(this, 'Alarms');
    new Intake(this, 'Intake', { alarms, bundles, door, runTable, stepQueue, webhookSecrets });

    // Where a run may have to wait for a person, and where every run ends.
    const approvals = new ApprovalFlow(this, 'ApprovalFlow', { bundles, runTable, stepQueue });
    const evidence = new EvidenceVault(this, 'EvidenceVault', { bundles, runTable, config });

    // The worker goes from step to step: lease and intent, the write at the target, the receipt.
    const connectionSecrets = new TenantSecrets(this, 'ConnectionSecrets', {
      ...config,
      purpose: 'connections',
      description: 'Credentials of connections: {"servicenow": {...}, "github": {...}, "slack": {...}}',
      generatedEntry: 'unused',
    });
    const worker = new Worker(this, 'Worker', {
      bundles,
      config,
      runTable,
      stepQueue,
      connectionSecrets,
      approvals,
      evidence,
    });

    alarms.deadLetters('StepDeadLetters', stepQueue);
    alarms.deadLetters('EvidenceDeadLetters', evidence.sealQueue);

    // The net under all of it, and the window into it.
    new Sweep(this, 'Sweep', { bundles, runTable, stepQueue, approvals, evidence });
    new Api(this, 'Api', { bundles, door, runTable, worker, stepQueue, evidence });

    new CfnOutput(this, 'Url', { value: door.api.apiEndpoint });
  }
}
