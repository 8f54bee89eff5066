import { CfnOutput, Stack } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { LOGGED } from '../lambdas/entry/environment.ts';
import { METRICS } from '../lambdas/entry/metrics.ts';
import { WORKER_TIMEOUT_MS } from '../lambdas/run/lease.ts';
import { Alarms } from './alarms.ts';
import { Api } from './api.ts';
import { ApprovalFlow } from './approval-flow.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { Dashboard } from './dashboard.ts';
import { DefinitionsApi } from './definitions-api.ts';
import { EvidenceApi } from './evidence-api.ts';
import { EvidenceBucket, SEAL_TIMEOUT } from './evidence-bucket.ts';
import { EvidenceKeyOutputs } from './evidence-key-outputs.ts';
import { EvidenceLog } from './evidence-log.ts';
import { CountersignHttpApi } from './http-api.ts';
import { Intake } from './intake.ts';
import { KeyedRoutes } from './keyed-routes.ts';
import { seconds } from './node-function.ts';
import { PolicyApi } from './policy-api.ts';
import { RunTable } from './run-table.ts';
import { Slack } from './slack.ts';
import type { StageConfig } from './stage-config.ts';
import { Sweep } from './sweep.ts';
import { TenantSecrets } from './tenant-secrets.ts';
import { WorkQueue } from './work-queue.ts';
import { Worker } from './worker.ts';

/** The sweeper sends what is due once a minute; a row that is still due after this has been missed many times. */
const OLDEST_DUE_SECONDS_MAX = 10 * 60;

/** The stage that the local host runs. */
const LOCAL_STAGE = 'local';

/** READ FIRST. One tenant stage, in the order in which data flows through it. */
export class CountersignStack extends Stack {
  constructor(scope: Construct, { config, bundles }: { config: StageConfig; bundles: FunctionBundles }) {
    super(scope, 'Countersign', {
      stackName: `countersign-${config.stage}`,
      description: `Countersign, stage ${config.stage}: governed automation for ${config.tenants.length} tenants`,
      terminationProtection: config.kind === 'prod',
    });

    // Everything durable about runs. Whoever changes a run does it by a conditional write here.
    const runTable = new RunTable(this, 'RunTable', config);
    // Messages that say "look at this run" and "seal this run": hints, for the table is the authority.
    const stepQueue = new WorkQueue(this, 'StepQueue', { consumerTimeout: seconds(WORKER_TIMEOUT_MS / 1000) });
    const sealQueue = new WorkQueue(this, 'SealQueue', { consumerTimeout: SEAL_TIMEOUT });
    const shared = { bundles, config, runTable };

    // A signed webhook comes in and becomes runs, in one transaction.
    const httpApi = new CountersignHttpApi(this, 'FrontDoor');
    const webhookSecrets = new TenantSecrets(this, 'WebhookSecrets', {
      ...config,
      purpose: 'webhook-signing',
      description: 'Secrets that webhook senders sign with: {"github": [...], "servicenow": [...], "slack": [...]}',
      generatedEntry: 'github',
    });
    const intake = new Intake(this, 'Intake', { ...shared, httpApi, stepQueue, webhookSecrets });

    // Where a run may have to wait for people, who are told in Slack.
    const messagingSecrets = new TenantSecrets(this, 'MessagingSecrets', {
      ...config,
      purpose: 'messaging',
      description: 'Credentials of what tells people: {"slack": {...}, "pagerduty": {...}}',
      generatedEntry: 'unused',
    });
    const approvals = new ApprovalFlow(this, 'ApprovalFlow', { ...shared, stepQueue, messagingSecrets });

    // The worker goes from step to step: policy, lease and intent, the write at the target, the receipt.
    const connectionSecrets = new TenantSecrets(this, 'ConnectionSecrets', {
      ...config,
      purpose: 'connections',
      description: 'Credentials of targets, by connection: {"servicenow": {...}, "github": {...}, "http": {...}}',
      generatedEntry: 'unused',
    });
    const targets = { connectionSecrets, messagingSecrets };
    const worker = new Worker(this, 'Worker', { ...shared, ...targets, stepQueue, sealQueue, approvals, httpApi });

    // Where every run ends, and what lets outsiders check that.
    const evidence = new EvidenceBucket(this, 'EvidenceVault', { ...shared, sealQueue });
    const evidenceLog = new EvidenceLog(this, 'EvidenceLog', { ...shared, httpApi, evidence });
    // Outputs are for whoever deploys; nobody deploys to a single machine, whose keys are asked for at their URL.
    if (config.stage !== LOCAL_STAGE) new EvidenceKeyOutputs(this, 'EvidenceKeyOutputs', { bundles, evidence });

    // The net under all of it.
    const { sweeper } = new Sweep(this, 'Sweep', { ...shared, stepQueue, sealQueue, approvals });

    // What people see, decide and define.
    const slack = new Slack(this, 'Slack', { ...shared, httpApi, worker, webhookSecrets, messagingSecrets });
    const keyed = new KeyedRoutes(this, 'KeyedRoutes', { ...shared, httpApi });
    const queues = { steps: stepQueue, evidence: sealQueue, approvals: approvals.queue };
    new Api(this, 'Api', { ...shared, httpApi, keyed, worker, queues });
    new DefinitionsApi(this, 'DefinitionsApi', { ...shared, keyed });
    new PolicyApi(this, 'PolicyApi', { ...shared, keyed });
    new EvidenceApi(this, 'EvidenceApi', { ...shared, keyed, evidence });

    // What an operator must hear of.
    const alarms = new Alarms(this, 'Alarms', config);
    const takingIn = { github: intake.github, servicenow: intake.servicenow, slack: slack.interactivity };
    alarms.serverErrors('ServerErrors', httpApi.api);
    const working = { worker: worker.step, sweeper, seal: evidence.seal };
    alarms.throttled({ ...takingIn, ...working }, 'Functions are throttled');
    alarms.waiting('StepMessagesWait', stepQueue);
    alarms.waiting('EvidenceMessagesWait', sealQueue);
    alarms.waiting('ApprovalMessagesWait', approvals.queue);
    for (const [id, each] of Object.entries(takingIn)) {
      alarms.said(`${id}SecretNotUsed`, each, LOGGED.secretNotUsed, 'A signing secret is not used');
    }
    alarms.logged('GithubConflict', intake.github, 'IDEMPOTENCY_CONFLICT', 'Webhooks answer 409');
    alarms.logged('ServicenowConflict', intake.servicenow, 'IDEMPOTENCY_CONFLICT', 'Webhooks answer 409');
    alarms.deadLetters('StepDeadLetters', stepQueue);
    alarms.deadLetters('EvidenceDeadLetters', sealQueue);
    alarms.deadLetters('ApprovalDeadLetters', approvals.queue);
    alarms.said('PolicyUndecided', worker.step, LOGGED.policyUndecided, 'Policy could not decide');
    alarms.said('CardNotUpdated', approvals.follow, LOGGED.cardNotUpdated, 'A card could not be updated');
    alarms.said('PromiseNotKept', sweeper, LOGGED.promiseNotKept, 'A promised effect did not happen');
    alarms.above('OldestDue', OLDEST_DUE_SECONDS_MAX, METRICS.oldestDueSeconds, 'Due rows are not sent');
    alarms.failing('SweeperFailing', sweeper, 'The sweeper does not sweep');
    alarms.silent('SweeperSilent', sweeper, 'The sweeper does not sweep');
    alarms.logged('EvidenceRefused', evidence.seal, 'CHAIN_BROKEN', 'A run is not sealed');
    alarms.failing('EvidenceLogFailing', evidenceLog.closeDays, 'The evidence log of a day is not closed');

    new Dashboard(this, 'Dashboard', { config, api: httpApi.api, intake: takingIn, queues, alarms });

    new CfnOutput(this, 'Url', { value: httpApi.api.apiEndpoint });
  }
}
