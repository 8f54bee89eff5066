import { randomBytes } from 'node:crypto';
import type { ResponseFrom } from '../../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, UsageError } from '../failure.ts';
import { withSecrets } from '../setup/secret-values.ts';

type SigningState = ResponseFrom<'PUT /api/v1/webhook-secrets/{source}'>;

const GENERATED_BYTES = 32;
export const newSigningSecret = (): string => randomBytes(GENERATED_BYTES).toString('hex');

export const webhookSetSecret: readonly Command[] = [
  {
    name: 'webhook set-secret',
    args: ['SOURCE'],
    description: 'set the secret that a sender signs webhooks with',
    details:
      'SOURCE is github, servicenow, slack or generic/NAME. Without --env and --file a new secret is generated and printed once.\n' +
      'The secret before it stays valid: change the sender, then run countersign webhook end-rotation SOURCE.\n' +
      'In a prod stage the secret of slack needs AWS credentials: --stage STAGE --tenant TENANT.',
    options: {
      env: { value: 'NAME', description: 'environment variable with the secret' },
      file: { value: 'FILE', description: 'file with the secret' },
      'drop-previous': { description: 'reject the previous secret at once, because others know it' },
      stage: { value: 'STAGE', description: 'set it with AWS credentials instead of an API key' },
      tenant: { value: 'TENANT', description: 'with --stage: the tenant' },
      region: { value: 'REGION', description: 'with --stage: the AWS region (default: AWS_REGION)' },
    },
    async run(call) {
      const source = call.arg(0);
      const given = givenSecret(call);
      const secret = given ?? newSigningSecret();
      const keepPrevious = !call.isSet('drop-previous');
      const state = await store(call, { source, secret, keepPrevious });
      if (call.json) call.printJson({ ...state, ...(given === undefined && { secret }) });
      else {
        call.terminal.print(`${printable(source)}: ${countText(state)}; within a minute`);
        if (given === undefined) call.terminal.print(`the secret, which is not shown again: ${secret}`);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'webhook end-rotation',
    args: ['SOURCE'],
    description: 'stop accepting the previous secret',
    options: {},
    async run(call) {
      const params = { source: pathOf(call.arg(0)) };
      const state = await call.api().call('DELETE /api/v1/webhook-secrets/{source}/previous', { params });
      if (call.json) call.printJson(state);
      else call.terminal.print(`${printable(call.arg(0))}: ${countText(state)}; within a minute`);
      return EXIT.ok;
    },
  },
];

const pathOf = (source: string): string => source.replace('/', ':');

function givenSecret(call: Call): string | undefined {
  const [env, file] = [call.option('env'), call.option('file')];
  if (env !== undefined) return String(withSecrets({ env }, call.environment));
  return file === undefined ? undefined : String(withSecrets({ file }, call.environment));
}

async function store(
  call: Call,
  { source, secret, keepPrevious }: { source: string; secret: string; keepPrevious: boolean },
): Promise<SigningState> {
  if (call.option('stage') === undefined) {
    const params = { source: pathOf(source) };
    return call.api().call('PUT /api/v1/webhook-secrets/{source}', { params, body: { secret, keepPrevious } });
  }
  const tenant = call.option('tenant');
  if (tenant === undefined) throw new UsageError('--tenant TENANT is required with --stage');
  const { operatorOf } = await import('../../operator/invoke-as-operator.ts');
  return (await operatorOf(call)).storeSigningSecret({ tenant, source, secret, keepPrevious });
}

const countText = ({ usable }: SigningState): string =>
  usable === 1 ? 'one secret is valid' : `${usable} secrets are valid, the new one and the one before it`;
