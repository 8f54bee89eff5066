import { basename } from 'node:path';
import { parsed, type RawResponse } from '../../../client/api-client.ts';
import { sendTo } from '../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../failure.ts';
import { LOCAL_TENANT, localOwnerKey, localSecret } from '../local-stage.ts';
import { readFile } from '../read-file.ts';

const SOURCES = ['github', 'servicenow'] as const;
/** Who signs a webhook: `generic/NAME` is a source that the tenant defines. */
export type Sender = (typeof SOURCES)[number] | `generic/${string}`;
const GENERIC = /^generic\/[a-z][a-z0-9-]*$/;
const NOTHING_STARTED =
  'accepted, but no run was started: no automation matches the event, or its filter is false' +
  ' (see npx countersign automations list)';
const TENANT = /^[a-z0-9-]+$/;

export const webhookSend: Command = {
  name: 'webhook send',
  args: ['FILE'],
  description: 'sign and send a sample webhook',
  details:
    'events/ has samples. The file is sent unchanged, even if it is not JSON.' +
    '\nSending the same content again starts no new run; change the file first.',
  options: {
    source: { value: 'SOURCE', description: 'github, servicenow or generic/NAME (default: from the file name)' },
    tenant: { value: 'TENANT', description: 'tenant (default acme)' },
    secret: { value: 'SECRET', description: "signing secret (default for a local host: the tenant's local secret)" },
    event: {
      value: 'EVENT',
      description: 'GitHub event (default: issues if the file contains an issue, otherwise ping)',
    },
    delivery: { value: 'ID', description: 'delivery id (default: a new id)' },
  },
  async run(call) {
    const file = call.arg(0);
    const body = readFile(file);
    const source = sourceOf(call, file);
    const tenant = call.option('tenant') ?? LOCAL_TENANT;
    if (!TENANT.test(tenant))
      throw new UsageError(`"${tenant}" is not a tenant name; use lower-case letters, digits and dashes`);
    const { signedHeaders } = await import('./sign-delivery.ts');
    const headers = signedHeaders(source, body, {
      secret: secretOf(call, source, tenant),
      id: call.option('delivery'),
      event: call.option('event') ?? (parsed(body.toString())?.issue ? 'issues' : 'ping'),
      nowMs: await serverTime(call),
    });
    const [kind, name] = source.split('/');
    const path = `/webhooks/${kind}/${tenant}${name === undefined ? '' : `/${name}`}`;
    const response = await sendTo(call.url, path, { method: 'POST', headers, body });
    return report(call, response, tenant);
  },
};

/** The clock of a local host can be set, and a signature is only valid near its time. */
async function serverTime(call: Call): Promise<number> {
  if (!call.isLocal) return Date.now();
  const { text } = await sendTo(call.url, '/_local/clock', {});
  const now = parsed(text)?.now;
  return typeof now === 'string' ? Date.parse(now) : Date.now();
}

export function sourceOf(call: Call, file: string): Sender {
  const named = call.option('source');
  if (named !== undefined && GENERIC.test(named)) return named as Sender;
  const source = SOURCES.find((each) => (named === undefined ? basename(file).startsWith(`${each}-`) : each === named));
  if (source) return source;
  throw new UsageError(
    named === undefined
      ? `cannot derive the source from the file name ${basename(file)}; pass --source ${SOURCES.join(', ')} or generic/NAME`
      : `--source must be ${SOURCES.join(', ')} or generic/NAME, not "${named}"`,
  );
}

function secretOf(call: Call, source: Sender, tenant: string): string {
  const secret = call.option('secret') ?? (call.isLocal ? localSecret(source, tenant) : undefined);
  if (!secret) throw new UsageError(`--secret is required to sign a webhook for ${call.url}`);
  return secret;
}

function report(call: Call, { status, text }: RawResponse, tenant: string): ExitCode {
  const { json, terminal, url } = call;
  const body = parsed(text);
  if (json) terminal.print(JSON.stringify({ status, ...(body ?? { text }) }, null, 2));
  if (status === 202 && body) {
    if (!json) for (const line of acceptedText(body, keyFor(call, tenant))) terminal.print(line);
    return EXIT.ok;
  }
  if (!json) terminal.note(printable(`${url} responded with ${status}: ${body?.detail ?? text.trim()}`));
  return status === 401 || status === 403 || status >= 500 ? EXIT.refused : EXIT.failed;
}

/** Another tenant than the default needs its own key. */
const keyFor = ({ isLocal }: Call, tenant: string) =>
  isLocal && tenant !== LOCAL_TENANT ? ` --key ${localOwnerKey(tenant)}` : '';

function acceptedText(
  { runIds, deduplicated }: { runIds?: unknown; deduplicated?: unknown },
  withKey: string,
): string[] {
  const ids = Array.isArray(runIds) ? runIds.map((runId) => printable(String(runId))) : [];
  if (ids.length === 0) return [NOTHING_STARTED];
  const first = deduplicated === true ? 'duplicate, no new run' : 'accepted';
  return [
    ...ids.map((runId) => `${first}: ${runId}`),
    `follow it: npx countersign runs watch ${ids[0]?.slice(0, 12)}${withKey}`,
  ];
}
