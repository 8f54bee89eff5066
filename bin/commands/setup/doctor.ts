import type { ResponseFrom } from '../../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import { packageVersion } from '../../version.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, Failure } from '../failure.ts';
import { connectionNames, test } from './connections.ts';

type Examined = ResponseFrom<'GET /api/v1/doctor'>;
type Finding = Examined['findings'][number];

const finding = (level: Finding['level'], subject: string, problem: string, fix: string): Finding => ({
  level,
  subject,
  problem,
  fix,
});

export const doctor: Command = {
  name: 'doctor',
  args: [],
  description: 'list what is missing or wrong, and how to fix it',
  details:
    'Also tests every connection, which calls its target. With --stage and AWS credentials it checks the owners of every\n' +
    'tenant of the stage, even if nobody has an API key yet. Exit code 1 if there is an error.',
  options: {
    'no-test': { description: 'do not test the connections' },
    stage: { value: 'STAGE', description: 'also check a deployed stage with AWS credentials' },
    region: { value: 'REGION', description: 'with --stage: the AWS region (default: AWS_REGION)' },
  },
  async run(call) {
    const findings = [...(await stageFindings(call)), ...(await tenantFindings(call))];
    if (call.json) call.printJson({ findings });
    else if (findings.length === 0) call.terminal.print('nothing is missing or wrong');
    else printFindings(call, findings);
    return findings.some(({ level }) => level === 'error') ? EXIT.failed : EXIT.ok;
  },
};

export function printFindings({ terminal }: Call, findings: readonly Finding[]): void {
  for (const { level, subject, problem, fix } of printable(findings)) {
    const mark = level === 'error' ? terminal.paint('bad', 'ERROR  ') : terminal.paint('waiting', 'warning');
    terminal.print(`${mark}  ${subject}: ${problem}`);
    terminal.print(terminal.paint('quiet', `         ${fix}`));
  }
}

/** What only the operator can see: tenants without owners. */
async function stageFindings(call: Call): Promise<Finding[]> {
  if (call.option('stage') === undefined) return [];
  const { operatorOf } = await import('../../operator/invoke-as-operator.ts');
  const { stage, kind, tenants } = await (await operatorOf(call)).describe();
  const wanted = kind === 'prod' ? 2 : 1;
  return tenants
    .filter(({ owners }) => owners.length < wanted)
    .map(({ tenant, owners }) =>
      finding(
        'error',
        `tenant ${tenant}`,
        owners.length === 0 ? 'is not set up: it has no owner' : `has only the owner ${owners[0]}, and prod needs two`,
        owners.length === 0
          ? `countersign tenant add FILE --stage ${stage}`
          : `countersign tenant owner ID --name NAME --tenant ${tenant} --stage ${stage}`,
      ),
    );
}

async function tenantFindings(call: Call): Promise<Finding[]> {
  let examined: Examined;
  try {
    examined = await call.api().call('GET /api/v1/doctor');
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // With --stage, the owners were checked without a key.
    if (call.option('stage') === undefined) throw error;
    return [finding('error', 'API', error.message, 'countersign tenant add FILE --stage STAGE, then pass --key')];
  }
  const { version, findings } = examined;
  return [...findings, ...versionFindings(version), ...(await testFindings(call))];
}

function versionFindings(deployed: string): Finding[] {
  const own = packageVersion();
  if (deployed === own) return [];
  const problem = `the stage has version ${deployed}, this command line ${own}`;
  return [finding('warning', 'version', problem, 'npx cdk deploy -c stage=STAGE, or use the same version here')];
}

async function testFindings(call: Call): Promise<Finding[]> {
  if (call.isSet('no-test')) return [];
  const found: Finding[] = [];
  for (const name of await connectionNames(call)) {
    if (!call.json && call.terminal.isInteractive) call.terminal.note(`testing ${name} …`);
    const { findings } = await test(call, name);
    for (const { level, credential, text } of findings) {
      if (level === 'ok') continue;
      // The server has reported credentials that are missing.
      if (text.includes('has no credential')) continue;
      const subject = `connection ${name}${credential === 'planCredential' ? ' (plans)' : ''}`;
      const fix = text.includes('invite') ? 'in Slack: /invite @countersign' : 'countersign connections add FILE';
      found.push(finding(level, subject, text, fix));
    }
  }
  return found;
}
