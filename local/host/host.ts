import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { HttpApi } from '../api-gateway/http-api.ts';
import type { InvokeFunction } from '../aws/aws.ts';
import { type Caller, type ObserveCall, startAwsEndpoint } from '../aws/aws-endpoint.ts';
import { Faults } from '../aws/faults.ts';
import { RequestCounts } from '../aws/request-counts.ts';
import type { LocalCloudWatch } from '../cloud/cloudwatch/cloudwatch.ts';
import { ConsoleSite } from '../cloud/console-site.ts';
import { startDynamoDb } from '../dynamodb/dynamodb.ts';
import { createTables, tablesOf } from '../dynamodb/tables.ts';
import { Iam } from '../iam/iam.ts';
import { Functions } from '../lambda/functions.ts';
import { LocalIssuer } from '../oidc/local-issuer.ts';
import { openSimulators } from '../simulators/simulators.ts';
import { type Assembly, synthesize } from '../template/synthesize.ts';
import { type ResolvedStack, resolveTemplate } from '../template/template.ts';
import { HostClock } from './clock.ts';
import { ControlApi } from './control-api.ts';
import { freePort } from './free-port.ts';
import { hostedServices } from './hosted-services.ts';
import { startHttpServer } from './http-server.ts';
import { privateFolder, writePrivateFile } from './private-files.ts';
import { LOCAL_SIGN_IN, LOCAL_SLACK_SIGNING_SECRETS, seed } from './seed.ts';

interface HostOptions {
  /** 0 is any free port. */
  port: number;
  dataFolder: string;
  /** Deletes the data of earlier starts. */
  fresh?: boolean;
  /** An assembly that was synthesized before. Without it, the host runs the CDK app. */
  assembly?: Assembly;
  /** For benchmarks: called after each AWS call. */
  observe?: ObserveCall;
  log(source: string, line: string): void;
}

export interface Host {
  url: string;
  /** The endpoint of the AWS services, for tools that use HOST_CREDENTIALS. */
  awsEndpointUrl: string;
  stack: ResolvedStack;
  cloudWatch: LocalCloudWatch;
  /** Stops everything, functions first. */
  stop(): Promise<void>;
}

/** Increase this number when a new version cannot read the stored data of the last one. */
const DATA_FORMAT = '2';

/** Starts the whole system on one machine: synthesizes the template and hosts its resources. */
export async function startHost(options: HostOptions): Promise<Host> {
  const { dataFolder, log } = options;
  if (options.fresh) rmSync(dataFolder, { recursive: true, force: true });
  privateFolder(dataFolder);
  checkDataFormat(dataFolder);
  // In the order of their start. They are stopped in reverse order, also if the start fails.
  const stops: (() => unknown)[] = [];
  const stop = async () => {
    for (const each of stops.splice(0).reverse()) await each();
  };
  try {
    const [server, dynamoDb, assembly] = await settleAll([
      startHttpServer(options.port),
      startDynamoDb(dataFolder),
      options.assembly ?? synthesize(join(dataFolder, 'cdk.out')),
    ]);
    stops.push(dynamoDb.stop, server.stop);

    const awsEndpointPort = await freePort();
    const stack = resolveTemplate(assembly.template, {
      stackName: assembly.stackName,
      awsEndpointUrl: `http://127.0.0.1:${awsEndpointPort}`,
      hostUrl: server.url,
    });
    await createTables(dynamoDb.url, stack);
    const tableName = String(tablesOf(stack)[0]?.ref);
    await seed(dynamoDb.url, tableName, server.url);

    const clock = new HostClock(dataFolder);
    const iam = new Iam(stack);
    const faults = new Faults();
    const requests = new RequestCounts();
    const callers = new Map<string, Caller>();
    // Work of an earlier start may invoke a function before the functions are ready.
    const { promise: functionsReady, resolve: functionsAre } = Promise.withResolvers<Functions>();
    const invoke: InvokeFunction = async (functionArn, event, traceHeader) =>
      (await functionsReady).invoke(functionArn, event, {}, traceHeader);
    const services = hostedServices({ stack, clock, iam, dataFolder, invoke, log });
    const awsEndpoint = await startAwsEndpoint({
      port: awsEndpointPort,
      stack,
      iam,
      requests,
      faults,
      dynamodb: dynamoDb,
      services,
      callers,
      observe: options.observe,
      crash: async (_function, accessKeyId) => (await functionsReady).crash(accessKeyId),
      log: (line) => log('aws', line),
    });
    const simulators = openSimulators({
      dataFolder,
      now: () => clock.now(),
      hostUrl: () => server.url,
      slackSigningSecrets: LOCAL_SLACK_SIGNING_SECRETS,
    });
    stops.push(() => simulators.close());

    const codeFolder = (logicalId: string) => {
      const code = stack.resources.get(logicalId)?.properties.Code as { S3Key: string };
      return assembly.codeFolder(code.S3Key);
    };
    const functions = new Functions({
      stack,
      clock,
      awsEndpointUrl: awsEndpoint.url,
      codeFolder,
      cloudWatch: services.cloudWatch,
      fault: (logicalId) => faults.forInvocation(logicalId),
      log,
      serveAws: awsEndpoint.serve,
      simulators: { url: `${server.url}/_sim`, answer: simulators.answer },
      registerCaller: (accessKeyId, caller) => callers.set(accessKeyId, caller),
    });
    functionsAre(functions);
    stops.push(
      awsEndpoint.stop,
      () => clock.stop(),
      () => functions.stop(),
    );

    // Last, because this continues the work of an earlier start.
    const work = services.start();
    stops.push(work.stop);
    server.open({
      api: new HttpApi({ stack, iam, invoke, clock, cloudWatch: services.cloudWatch, log: (line) => log('api', line) }),
      sockets: services.sockets,
      control: new ControlApi({
        clock,
        faults,
        requests,
        iam,
        functions,
        stack,
        hostUrl: server.url,
        awsEndpointUrl: awsEndpoint.url,
        bedrock: services.bedrock,
        cloudWatch: services.cloudWatch,
        xray: services.xray,
        sweep: work.sweep,
        isIdle: () => functions.idle && services.queuesAreEmpty(),
      }),
      simulators,
      issuer: new LocalIssuer({
        dataFolder,
        now: () => clock.now(),
        hostUrl: () => server.url,
        clients: LOCAL_SIGN_IN,
      }),
      console: ConsoleSite.of(stack, codeFolder),
    });
    return { url: server.url, awsEndpointUrl: awsEndpoint.url, stack, cloudWatch: services.cloudWatch, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Refuses data of an earlier version before anything reads it. */
function checkDataFormat(dataFolder: string): void {
  const file = join(dataFolder, 'data-format');
  const stored = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  if (stored !== DATA_FORMAT && existsSync(join(dataFolder, 'dynamodb.sqlite'))) {
    throw new Error(`another version of Countersign wrote the data in ${dataFolder}; add --fresh to delete it`);
  }
  writePrivateFile(file, DATA_FORMAT);
}

/** Waits for all starts. If one fails, stops the others. */
async function settleAll<T extends unknown[]>(starting: [...T]): Promise<{ [K in keyof T]: Awaited<T[K]> }> {
  const settled = await Promise.allSettled(starting);
  const failed = settled.find((each): each is PromiseRejectedResult => each.status === 'rejected');
  if (!failed) return settled.map((each) => (each as PromiseFulfilledResult<unknown>).value) as never;
  for (const each of settled) {
    if (each.status === 'fulfilled') await (each.value as { stop?: () => unknown }).stop?.();
  }
  throw failed.reason;
}
