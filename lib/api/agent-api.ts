import { Construct } from 'constructs';
import { AgentEnrolEnvironment, AgentWorkEnvironment, ApiEnvironment } from '../../lambdas/api/environment.ts';
import { KeysEnvironment } from '../../lambdas/evidence/environment.ts';
import type { FunctionBundles } from '../bundle-functions.ts';
import type { EvidenceBucket } from '../evidence/evidence-bucket.ts';
import type { LiveFeed } from '../live-feed.ts';
import { NodeFunction, seconds } from '../node-function.ts';
import type { RunTable } from '../run-table.ts';
import type { StageConfig } from '../stage-config.ts';
import type { Worker } from '../worker.ts';
import type { CountersignHttpApi } from './http-api.ts';
import type { ListCursors } from './list-cursors.ts';
import type { SessionTokens } from './session-tokens.ts';

const API_TIMEOUT = seconds(10);
/** A result waits until 10 MB of output are read and written to S3. */
const WORK_TIMEOUT = seconds(25);

interface AgentApiProps {
  bundles: FunctionBundles;
  config: StageConfig;
  httpApi: CountersignHttpApi;
  cursors: ListCursors;
  runTable: RunTable;
  evidence: EvidenceBucket;
  worker: Worker;
  sessionTokens: SessionTokens;
  liveFeed: LiveFeed | undefined;
}

/**
 * The routes of agents and the routes about agents.
 *
 * Agents use the HTTP API like everybody else. Function URLs would cost half (1,000 agents that sync every 5 s: 364 instead
 * of 882 USD a month, because each sync saves the request of the HTTP API), but they have no throttling for each route, no
 * mutual TLS and another address, which each customer's firewall would have to allow.
 */
export class AgentApi extends Construct {
  readonly work: NodeFunction;

  constructor(scope: Construct, id: string, props: AgentApiProps) {
    super(scope, id);
    this.#enrol(props);
    this.work = this.#work(props);
    this.#agents(props);
  }

  /**
   * Has the permissions of a worker for commits, and no credential of a target. Its concurrency is reserved, so that busy
   * workers cannot delay a sync: without it an agent loses its leases. A sync takes some 20 ms, so that 25 of them at
   * once are more than a thousand agents need.
   */
  #work({ bundles, config, httpApi, runTable, evidence, worker, sessionTokens }: AgentApiProps): NodeFunction {
    const work = new NodeFunction(this, 'Work', {
      bundles,
      entry: 'api/agents/agent-work',
      description: 'Receives syncs, acknowledgements, output and results of agents',
      schema: AgentWorkEnvironment,
      environment: {
        ...worker.runChangerEnvironment,
        EXPORT_BUCKET: evidence.exports.environment.EXPORT_BUCKET,
        ...sessionTokens.environment,
      },
      timeout: WORK_TIMEOUT,
      reservedConcurrency: config.intakeConcurrency,
    });
    worker.allowMoves(work);
    // A command that is a session gets its token with the confirmation.
    sessionTokens.allow(work);
    runTable.allow(work, ['PutItem'], ['RECEIPT']);
    runTable.allow(work, ['GetItem', 'PutItem'], ['AGENT']);
    runTable.allow(work, ['GetItem', 'Query', 'PutItem'], ['OUT']);
    evidence.exports.writableBy(work, 'output');
    httpApi.serve('agentWork', work);
    return work;
  }

  /** Has a route for everybody, so it can create agents only from a token, and change nothing else. */
  #enrol({ bundles, httpApi, runTable, evidence, liveFeed }: AgentApiProps): void {
    const introduce = evidence.keys.length > 1 ? this.#introduce(bundles, evidence) : undefined;
    const enrol = new NodeFunction(this, 'Enrol', {
      bundles,
      entry: 'api/agents/agent-enrol',
      description: 'Enrols, registers, drains and unregisters agents',
      schema: AgentEnrolEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        EVIDENCE_KEYS: evidence.signing.EVIDENCE_KEYS,
        ...(introduce && { INTRODUCE_FUNCTION: introduce.functionName }),
        ...(liveFeed && { LIVE_URL: liveFeed.url }),
      },
      timeout: API_TIMEOUT,
    });
    runTable.allow(enrol, ['GetItem', 'Query', 'PutItem'], ['AGENT']);
    runTable.allow(enrol, ['PutItem'], ['CHANGE']);
    enrol.allow(
      ['kms:GetPublicKey'],
      evidence.keys.filter(({ validUntil }) => validUntil === null).map(({ keyId }) => keyId),
    );
    if (introduce) enrol.allow(['lambda:InvokeFunction'], [introduce.functionArn]);
    httpApi.serve('agentEnrol', enrol);
  }

  /** Exists only after the evidence key was replaced. Has no route, so that nobody else can sign with a retired key. */
  #introduce(bundles: FunctionBundles, evidence: EvidenceBucket): NodeFunction {
    const introduce = new NodeFunction(this, 'Introduce', {
      bundles,
      entry: 'api/agents/introduce-keys',
      description: 'Introduces new evidence keys to agents: each is signed by the key that it replaces',
      schema: KeysEnvironment,
      environment: { EVIDENCE_KEYS: evidence.signing.EVIDENCE_KEYS },
      timeout: API_TIMEOUT,
    });
    const keyIds = evidence.keys.map(({ keyId }) => keyId);
    introduce.allow(['kms:Sign'], keyIds.slice(0, -1));
    introduce.allow(['kms:GetPublicKey'], keyIds);
    return introduce;
  }

  #agents({ bundles, httpApi, cursors, runTable }: AgentApiProps): void {
    const agents = new NodeFunction(this, 'Agents', {
      bundles,
      entry: 'api/agents/agents',
      description: 'Returns, drains and removes agents; creates enrolment tokens; changes profiles',
      schema: ApiEnvironment,
      environment: { RUN_TABLE: runTable.table.tableName, ...cursors.environment },
      timeout: API_TIMEOUT,
    });
    cursors.allow(agents);
    runTable.allow(agents, ['GetItem', 'Query', 'PutItem', 'DeleteItem'], ['AGENT']);
    runTable.allow(agents, ['GetItem', 'Query', 'PutItem'], ['TENANT']);
    runTable.allow(agents, ['PutItem'], ['CHANGE']);
    httpApi.serve('agents', agents);
  }
}
