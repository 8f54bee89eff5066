import type { Connections } from '../../connectors/connections.ts';
import type { Access } from '../../connectors/connector.ts';
import { type ConnectionKind, kindOf } from '../../connectors/credential-form.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { CountersignError } from '../../run/errors.ts';
import type { TestFinding } from '../credentials.ts';
import { testAgent } from './test-agent.ts';
import { testGithub } from './test-github.ts';
import { testHttp } from './test-http.ts';
import { testPagerduty } from './test-pagerduty.ts';
import { testServicenow } from './test-servicenow.ts';
import { testSlack } from './test-slack.ts';
import { whyItFailed } from './why-it-failed.ts';

export type Observed = Omit<TestFinding, 'credential'>;

/** Reads something harmless with the credential. Throws the connector's error if the target refuses. */
type Test = (access: Access, settings: TestSettings) => Promise<Observed[]>;

export interface TestSettings {
  credential: TestFinding['credential'];
  /** The Slack channel for approvals. */
  approvalsChannel: string;
}

const TESTS: Record<ConnectionKind, Test> = {
  github: testGithub,
  servicenow: testServicenow,
  slack: testSlack,
  pagerduty: testPagerduty,
  http: testHttp,
  a2a: testAgent,
};

/** Used if neither workflow nor settings name a channel. */
const DEFAULT_APPROVALS_CHANNEL = '#approvals';

export interface ConnectionTester {
  /** Opens connections with the credentials of the worker. */
  connections: Connections;
  /** Opens connections with the credentials of plans. */
  planConnections: Connections;
  definitions: Pick<Definitions, 'settings'>;
}

/** Tests a connection with the credential that writes and, if there is one, with the credential of plans. */
export async function testConnection(
  tester: ConnectionTester,
  tenant: string,
  connection: string,
): Promise<TestFinding[]> {
  const { approvalsChannel = DEFAULT_APPROVALS_CHANNEL } = await tester.definitions.settings(tenant);
  const test = async (credential: TestFinding['credential'], connections: Connections): Promise<TestFinding[]> => {
    const observed = await observe(() => connections.open(tenant, connection), {
      connection,
      // Without a credential for plans, a plan says which values it could not read.
      notOpened: credential === 'credential' ? 'error' : 'warning',
      settings: { approvalsChannel, credential },
    });
    return observed.map((each) => ({ ...each, credential }));
  };
  // A plan starts no session.
  if (kindOf(connection) === 'a2a') return test('credential', tester.connections);
  const [written, planned] = await Promise.all([
    test('credential', tester.connections),
    test('planCredential', tester.planConnections),
  ]);
  return [...written, ...planned];
}

async function observe(
  open: () => Promise<Access>,
  { connection, notOpened, settings }: { connection: string; notOpened: Observed['level']; settings: TestSettings },
): Promise<Observed[]> {
  let access: Access;
  try {
    access = await open();
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    return [{ level: notOpened, text: error.message }];
  }
  try {
    return await TESTS[kindOf(connection)](access, settings);
  } catch (error) {
    return [{ level: 'error', text: whyItFailed(error, access.baseUrl) }];
  }
}
