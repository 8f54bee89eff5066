import { CfnOutput, CustomResource, Stack } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { LOGGED } from '../lambdas/entry/environment.ts';
import { WORKER_TIMEOUT_MS } from '../lambdas/run/lease.ts';
import { METRICS } from '../lambdas/telemetry/metrics.ts';
import { AccessApi } from './api/access-api.ts';
import { AgentApi } from './api/agent-api.ts';
import { Api } from './api/api.ts';
import { DefinitionsApi } from './api/definitions-api.ts';
import { CountersignHttpApi } from './api/http-api.ts';
import { ListCursors } from './api/list-cursors.ts';
import { PolicyApi } from './api/policy-api.ts';
import { SessionTokens } from './api/session-tokens.ts';
import { ApprovalFlow } from './approval-flow.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { ConsoleSite } from './console/console-site.ts';
import { EvidenceApi } from './evidence/evidence-api.ts';
import { EvidenceBucket, SEAL_TIMEOUT } from './evidence/evidence-bucket.ts';
import { EvidenceKeyOutputs } from './evidence/evidence-key-outputs.ts';
import { EvidenceLog } from './evidence/evidence-log.ts';
import { Intake } from './intake.ts';
import { LiveFeed } from './live-feed.ts';
import { type NodeFunction, runInVpc, seconds, setLogLevel } from './node-function.ts';
import { Alarms } from './observability/alarms.ts';
import { Dashboard } from './observability/dashboard.ts';
import { objectivesOf } from './observability/objectives.ts';
import { SavedQueries } from './observability/saved-queries.ts';
import { RunTable } from './run-table.ts';
import { Slack } from './slack.ts';
import { LOCAL_STAGE, type StageConfig } from './stage-config.ts';
import { Sweep } from './sweep.ts';
import { TenantSecrets } from './tenant-secrets.ts';
import { TenantSetup } from './tenant-setup.ts';
import { VpcEndpoints } from './vpc-endpoints.ts';
import { WorkQueue } from './work-queue.ts';
import { Worker } from './worker.ts';

/** The sweeper runs once a minute, so it has missed a row that is due for this long many times. */
const OLDEST_DUE_SECONDS_MAX = 10 * 60;

interface Watched {
  config: StageConfig;
  runTable: RunTable;
  httpApi: CountersignHttpApi;
  intake: Intake;
  slack: Slack;
  worker: Worker;
  agentApi: AgentApi;
  approvals: ApprovalFlow;
  evidence: EvidenceBucket;
  evidenceLog: EvidenceLog;
  sweeper: NodeFunction;
  liveFeed: LiveFeed | undefined;
  queues: { steps: WorkQueue; evidence: WorkQueue; approvals: WorkQueue };
}

/** READ FIRST. All parts of one stage, in the order in which data flows through them. */
export class CountersignStack extends Stack {
  constructor(scope: Construct, { config, bundles }: { config: StageConfig; bundles: FunctionBundles }) {
    super(scope, 'Countersign', {
      stackName: `countersign-${config.stage}`,
      description: `Countersign, stage ${config.stage}: governed automation for ${config.tenants.length} tenants`,
      terminationProtection: config.kind === 'prod',
    });

    setLogLevel(this, config.logLevel);
    if (config.vpc) runInVpc(this, config.vpc);
    // The state of all runs. Every change of a run is a conditional write to this table.
    const runTable = new RunTable(this, 'RunTable', config);
    // A step message means "process this run", a seal message "seal this run". The state itself is in the table only.
    const stepQueue = new WorkQueue(this, 'StepQueue', { consumerTimeout: seconds(WORKER_TIMEOUT_MS / 1000) });
    const sealQueue = new WorkQueue(this, 'SealQueue', {
      consumerTimeout: SEAL_TIMEOUT,
      ...(config.sealWindowSeconds > 0 && { batchWindow: seconds(config.sealWindowSeconds) }),
    });
    const shared = { bundles, config, runTable };

    // A signed webhook arrives and starts runs, in one transaction.
    // This id stays: another one would replace the cursor secret and the authorizer.
    const cursors = new ListCursors(this, 'KeyedRoutes');
    // This id stays: another one would replace the API and change its URL, which is configured in GitHub and ServiceNow.
    const httpApi = new CountersignHttpApi(this, 'FrontDoor', { ...shared, cursors });
    // New commits and output reach the people who watch them, over a WebSocket.
    const liveFeed = config.liveFeed ? new LiveFeed(this, 'LiveFeed', { ...shared, httpApi, stepQueue }) : undefined;
    const webhookSecrets = new TenantSecrets(this, 'WebhookSecrets', {
      ...config,
      purpose: 'webhook-signing',
      description:
        'Secrets that webhook senders sign with: {"github": [...], "servicenow": [...], "slack": [...], "generic/NAME": [...]}',
      generatedEntry: 'github',
    });
    const intake = new Intake(this, 'Intake', { ...shared, httpApi, stepQueue, webhookSecrets });

    // A run waits for the decision of people, who are notified in Slack.
    const messagingSecrets = new TenantSecrets(this, 'MessagingSecrets', {
      ...config,
      purpose: 'messaging',
      description: 'Credentials for notifications: {"slack": {...}, "pagerduty": {...}}',
      generatedEntry: 'unused',
    });
    const approvals = new ApprovalFlow(this, 'ApprovalFlow', { ...shared, stepQueue, messagingSecrets });

    // The worker processes the steps: policy, lease and intent, the write to the target, the receipt.
    const connectionSecrets = new TenantSecrets(this, 'ConnectionSecrets', {
      ...config,
      purpose: 'connections',
      description: 'Credentials of targets, by connection: {"servicenow": {...}, "github": {...}, "http": {...}}',
      generatedEntry: 'unused',
    });
    const targets = { connectionSecrets, messagingSecrets };
    // Every run ends with an evidence bundle, which auditors can verify offline. The id of the bucket stays. The key
    // of evidence also signs the commands that the worker assigns to agents.
    const evidence = new EvidenceBucket(this, 'EvidenceVault', { ...shared, sealQueue });
    const workerQueues = { stepQueue, sealQueue };
    // A session that a step starts gets a token for its own run.
    const sessionTokens = new SessionTokens(this, 'SessionTokens');
    const worker = new Worker(this, 'Worker', {
      ...shared,
      ...targets,
      ...workerQueues,
      approvals,
      httpApi,
      evidence,
      liveFeed,
      sessionTokens,
    });
    const evidenceLog = new EvidenceLog(this, 'EvidenceLog', { ...shared, httpApi, evidence });
    // On the local host, keys are read from their URL.
    if (config.stage !== LOCAL_STAGE) new EvidenceKeyOutputs(this, 'EvidenceKeyOutputs', { bundles, evidence });

    // Once a minute the sweeper sends messages for all due rows, which recovers every lost message.
    const { sweeper } = new Sweep(this, 'Sweep', { ...shared, stepQueue, sealQueue, approvals });

    // People decide in Slack, and see, decide and define over the API.
    const slack = new Slack(this, 'Slack', { ...shared, httpApi, worker, stepQueue, webhookSecrets, messagingSecrets });
    const queues = { steps: stepQueue, evidence: sealQueue, approvals: approvals.queue };
    const api = new Api(this, 'Api', {
      ...shared,
      httpApi,
      cursors,
      sessionTokens,
      worker,
      evidence,
      queues,
      stepQueue,
      liveFeed,
    });
    new AccessApi(this, 'AccessApi', { ...shared, httpApi, cursors, liveFeed });
    const { planSecrets } = new DefinitionsApi(this, 'DefinitionsApi', { ...shared, httpApi, cursors, stepQueue });
    new PolicyApi(this, 'PolicyApi', { ...shared, httpApi, cursors, evidence });
    const secrets = [webhookSecrets, messagingSecrets, connectionSecrets, planSecrets];
    new TenantSetup(this, 'TenantSetup', { ...shared, httpApi, cursors, secrets });
    new EvidenceApi(this, 'EvidenceApi', { ...shared, httpApi, evidence });

    // Agents run commands in the networks of customers: they fetch assignments, and report output and results.
    const agentApi = new AgentApi(this, 'AgentApi', {
      ...{ ...shared, httpApi, cursors, evidence, worker, sessionTokens, liveFeed },
    });

    // People work in the console, which uses the same HTTP API.
    const { accessLogs } = evidence;
    if (config.console) {
      const site = new ConsoleSite(this, 'Console', { bundles, config, httpApi, accessLogs, liveFeed });
      // The local host serves the console at the address of the HTTP API, without TLS.
      const url = config.stage === LOCAL_STAGE ? httpApi.url : site.url;
      approvals.linkTo(url);
      api.mcp.addEnvironment('CONSOLE_URL', url);
    }

    if (config.vpc?.endpoints) {
      const endpoints = new VpcEndpoints(this, 'VpcEndpoints', { config, vpc: config.vpc });
      // Without an endpoint, their functions could not even report a failure, and CloudFormation waits for an hour.
      for (const each of this.node.findAll()) if (each instanceof CustomResource) each.node.addDependency(endpoints);
    }

    const evidenceParts = { evidence, evidenceLog };
    this.#addAlarms({
      config,
      runTable,
      httpApi,
      intake,
      slack,
      worker,
      agentApi,
      approvals,
      ...evidenceParts,
      sweeper,
      queues,
      liveFeed,
    });
    new CfnOutput(this, 'Url', { value: httpApi.url });
  }

  #addAlarms(watched: Watched): void {
    const { config, httpApi, intake, slack, worker, agentApi, approvals, evidence, evidenceLog } = watched;
    const { sweeper, queues, liveFeed, runTable } = watched;
    const alarms = new Alarms(this, 'Alarms', config);
    const { github, servicenow, generic } = intake;
    const intakeFunctions = { github, servicenow, generic, slack: slack.interactivity };
    alarms.serverErrors('ServerErrors', httpApi.api);
    const otherFunctions = {
      worker: worker.step,
      agents: agentApi.work,
      sweeper,
      seal: evidence.seal,
      cards: approvals.waitForDecision,
    };
    alarms.throttled({ ...intakeFunctions, ...otherFunctions }, 'Functions are throttled');
    alarms.waiting('StepMessagesWait', queues.steps);
    alarms.waiting('EvidenceMessagesWait', queues.evidence);
    alarms.waiting('ApprovalMessagesWait', queues.approvals);
    const { slack: _slack, ...webhooks } = intakeFunctions;
    alarms.anyLoggedMessage('SecretNotUsed', intakeFunctions, LOGGED.secretNotUsed, 'A signing secret is not used');
    alarms.anyLoggedError('WebhookConflict', webhooks, 'IDEMPOTENCY_CONFLICT', 'Webhooks respond with 409');
    alarms.deadLetters('StepDeadLetters', queues.steps);
    alarms.deadLetters('EvidenceDeadLetters', queues.evidence);
    alarms.deadLetters('ApprovalDeadLetters', queues.approvals);
    alarms.loggedMessage('PolicyUndecided', worker.step, LOGGED.policyUndecided, 'Policy could not decide');
    alarms.loggedMessage(
      'CardNotUpdated',
      approvals.publishDecision,
      LOGGED.cardNotUpdated,
      'A card could not be updated',
    );
    // The id is also the name of a metric, so it stays.
    alarms.loggedMessage('PromiseNotKept', sweeper, LOGGED.outboxEntryStuck, 'An outbox entry was not completed');
    alarms.loggedMessage('ScheduleFailed', sweeper, LOGGED.scheduleFailed, 'A schedule starts no run');
    alarms.above('OldestDue', OLDEST_DUE_SECONDS_MAX, METRICS.oldestDueSeconds, 'Due rows are not sent');
    alarms.any('ProfileViolations', METRICS.profileViolations, 'A command violated its profile');
    alarms.failing('SweeperFailing', sweeper, 'The sweeper does not sweep');
    alarms.silent('SweeperSilent', sweeper, 'The sweeper does not sweep');
    alarms.loggedError('EvidenceRefused', evidence.seal, 'CHAIN_BROKEN', 'A run is not sealed');
    alarms.loggedError('RulesBroken', evidence.seal, 'RULES_BROKEN', 'A run broke a rule');
    if (liveFeed) alarms.messagesIn('LiveFeedLost', liveFeed.lost, 'The live feed lost events');
    alarms.failing('EvidenceLogFailing', evidenceLog.closeDays, 'The evidence log of a day is not closed');

    const objectives = objectivesOf(config);
    for (const objective of objectives) alarms.burning(objective);

    const shown = { config, api: httpApi.api, intake: intakeFunctions, queues, alarms, objectives, runTable };
    new Dashboard(this, 'Dashboard', shown);
    const functions = [...Object.values(intakeFunctions), ...Object.values(otherFunctions)];
    new SavedQueries(this, 'SavedQueries', { config, functions });
  }
}
