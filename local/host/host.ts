import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { HttpApi } from '../api-gateway/http-api.ts';
import type { InvokeFunction } from '../aws/aws.ts';
import { type Caller, startGateway } from '../aws/aws-endpoint.ts';
import { Faults } from '../aws/faults.ts';
import { RequestCounts } from '../aws/request-counts.ts';
import { createTables, startDynamoDb } from '../dynamodb/dynamodb.ts';
import { tablesOf } from '../dynamodb/tables.ts';
import { Iam } from '../iam/iam.ts';
import { Functions } from '../lambda/functions.ts';
import { openSimulators } from '../simulators/simulators.ts';
import { type Assembly, synthesize } from '../template/synthesize.ts';
import { type ResolvedStack, resolveTemplate } from '../template/template.ts';
import { HostClock } from './clock.ts';
import { LocalControl } from './control-api.ts';
import { freePort } from './free-port.ts';
import { hostedServices } from './hosted-services.ts';
import { startWorld } from './http-server.ts';
import { privateFolder } from './private-files.ts';
import { LOCAL_SLACK_SIGNING_SECRETS, seed } from './seed.ts';

interface HostOptions {
  /** 0 is any free port. */
  port: number;
  dataFolder: string;
  /** Forget what an earlier start left in the data folder. */
  fresh?: boolean;
  /** An assembly synthesized before; without it the CDK app is run. */
  assembly?: Assembly;
  log(source: string, line: string): void;
}

export interface Host {
  url: string;
  /** Where the stack's AWS services answer, for tools that look inside (with HOST_CREDENTIALS). */
  gatewayUrl: string;
  stack: ResolvedStack;
  /** Ends everything that was started, functions first. */
  stop(): Promise<void>;
}

/** Starts the whole system on one machine: synthesizes the template, and hosts what is in it. */
export async function startHost(options: HostOptions): Promise<Host> {
  const { dataFolder, log } = options;
  if (options.fresh) rmSync(dataFolder, { recursive: true, force: true });
  privateFolder(dataFolder);
  // What is stopped when starting fails half way, or in the end: the last started first.
  const stops: (() => unknown)[] = [];
  const stop = async () => {
    for (const each of stops.splice(0).reverse()) await each();
  };
  try {
    const [world, dynamoDb, assembly] = await settleAll([
      startWorld(options.port),
      startDynamoDb({ dataFolder, log: (line) => log('dynamodb', line) }),
      options.assembly ?? synthesize(join(dataFolder, 'cdk.out')),
    ]);
    stops.push(dynamoDb.stop, world.stop);

    const gatewayPort = await freePort();
    const stack = resolveTemplate(assembly.template, {
      stackName: assembly.stackName,
      gatewayUrl: `http://127.0.0.1:${gatewayPort}`,
      worldUrl: world.url,
    });
    await createTables(dynamoDb.url, stack);
    const tableName = String(tablesOf(stack)[0]?.ref);
    await seed(dynamoDb.url, tableName, world.url);

    const clock = new HostClock(dataFolder);
    const iam = new Iam(stack);
    const faults = new Faults();
    const requests = new RequestCounts();
    const callers = new Map<string, Caller>();
    // Work an earlier start left behind may ask for a function before there is one.
    const { promise: functionsReady, resolve: functionsAre } = Promise.withResolvers<Functions>();
    const invoke: InvokeFunction = async (functionArn, event, traceHeader) =>
      (await functionsReady).invoke(functionArn, event, {}, traceHeader);
    const services = hostedServices({ stack, clock, iam, dataFolder, invoke, log });
    const gateway = await startGateway({
      port: gatewayPort,
      stack,
      iam,
      requests,
      faults,
      dynamodbUrl: dynamoDb.url,
      services,
      callers,
      crash: async (_function, accessKeyId) => (await functionsReady).crash(accessKeyId),
      log: (line) => log('gateway', line),
    });
    const functions = new Functions({
      stack,
      clock,
      gatewayUrl: gateway.url,
      codeFolder: (logicalId) => {
        const code = stack.resources.get(logicalId)?.properties.Code as { S3Key: string };
        return assembly.codeFolder(code.S3Key);
      },
      log,
      registerCaller: (accessKeyId, caller) => callers.set(accessKeyId, caller),
    });
    functionsAre(functions);
    stops.push(
      gateway.stop,
      () => clock.stop(),
      () => functions.stop(),
    );

    const simulators = openSimulators({
      dataFolder,
      now: () => clock.now(),
      worldUrl: () => world.url,
      slackSigningSecrets: LOCAL_SLACK_SIGNING_SECRETS,
    });
    stops.push(() => simulators.close());

    // Last, because from here on work that an earlier start left behind goes on.
    const work = services.start();
    stops.push(work.stop);
    world.open({
      api: new HttpApi({ stack, iam, invoke, clock, log: (line) => log('api', line) }),
      control: new LocalControl({
        clock,
        faults,
        requests,
        iam,
        functions,
        stack,
        bedrock: services.bedrock,
        sweep: work.sweep,
      }),
      simulators,
    });
    return { url: world.url, gatewayUrl: gateway.url, stack, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Waits for all even if one fails, so that nothing half started is left running unseen. */
async function settleAll<T extends unknown[]>(starting: [...T]): Promise<{ [K in keyof T]: Awaited<T[K]> }> {
  const settled = await Promise.allSettled(starting);
  const failed = settled.find((each): each is PromiseRejectedResult => each.status === 'rejected');
  if (!failed) return settled.map((each) => (each as PromiseFulfilledResult<unknown>).value) as never;
  for (const each of settled) {
    if (each.status === 'fulfilled') await (each.value as { stop?: () => unknown }).stop?.();
  }
  throw failed.reason;
}
