import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { TriggerSource } from '../../../lambdas/run/run.ts';
import { type Answer, parse, problemOf, send } from '../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, type ExitCode, Failure, UsageError } from '../failure.ts';
import { LOCAL_TENANT, localOwnerKey, localSecret, signedHeaders } from './sign-delivery.ts';

const SOURCES: readonly TriggerSource[] = ['github', 'servicenow'];
const NOTHING_STARTED =
  'accepted; no run was started: no automation is for this event, or its filter turned it away' +
  ' (npx countersign automations list)';
const TENANT = /^[a-z0-9-]+$/;

export const webhookSend: Command = {
  name: 'webhook send',
  takes: ['FILE'],
  says: 'sign a sample webhook and send it',
  details:
    'Samples are in events/. The file is sent as it is, byte for byte, even if it is not JSON.' +
    '\nA body that was sent before starts nothing again; change the file to send a new event.',
  options: {
    source: { value: 'SOURCE', says: 'github or servicenow (default: how the name of the file begins)' },
    tenant: { value: 'TENANT', says: 'whose webhook it is (default acme)' },
    secret: { value: 'SECRET', says: "what to sign with (on this machine, the tenant's local secret)" },
    event: { value: 'EVENT', says: 'the GitHub event (default issues if there is an issue in it, else ping)' },
    delivery: { value: 'ID', says: 'id of the delivery (default: a new one)' },
  },
  async run(call) {
    const file = call.positional(0);
    const body = read(file);
    const source = sourceOf(call, file);
    const tenant = call.text('tenant') ?? LOCAL_TENANT;
    if (!TENANT.test(tenant)) throw new UsageError(`"${tenant}" is not the name of a tenant`);
    const headers = signedHeaders(source, body, {
      secret: secretOf(call, source, tenant),
      id: call.text('delivery'),
      event: call.text('event') ?? (parse(body.toString())?.issue ? 'issues' : 'ping'),
      nowMs: await nowAt(call),
    });
    const answer = await send(call.url, `/webhooks/${source}/${tenant}`, { method: 'POST', headers, body });
    return report(call, answer, tenant);
  },
};

/** The clock of a host on this machine may have been moved, and a signature holds only around its own time. */
async function nowAt(call: Call): Promise<number> {
  if (!call.isLocal) return Date.now();
  const { text } = await send(call.url, '/_local/clock', {});
  const now = parse(text)?.now;
  return typeof now === 'string' ? Date.parse(now) : Date.now();
}

export function read(file: string): Buffer<ArrayBuffer> {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new Failure(EXIT.usage, `cannot read ${file}: ${(cause as Error).message}`, { cause });
  }
}

export function sourceOf(call: Call, file: string): TriggerSource {
  const named = call.text('source');
  const source = SOURCES.find((each) => (named === undefined ? basename(file).startsWith(`${each}-`) : each === named));
  if (source) return source;
  throw new UsageError(
    named === undefined
      ? `the name of ${basename(file)} does not say who sends it; add --source ${SOURCES.join(' or ')}`
      : `--source is ${SOURCES.join(' or ')}, not "${named}"`,
  );
}

function secretOf(call: Call, source: TriggerSource, tenant: string): string {
  const secret = call.text('secret') ?? (call.isLocal ? localSecret(source, tenant) : undefined);
  if (!secret) throw new UsageError(`to sign for ${call.url}, give the secret with --secret`);
  return secret;
}

function report(call: Call, { status, text }: Answer, tenant: string): ExitCode {
  const { json, terminal, url } = call;
  const body = parse(text);
  if (json) terminal.print(JSON.stringify({ status, ...(body ?? { text }) }, null, 2));
  if (status === 202 && body) {
    if (!json) for (const line of acceptedInWords(body, keyFor(call, tenant))) terminal.print(line);
    return EXIT.ok;
  }
  if (!json) terminal.note(printable(`${url} answered ${status}: ${problemOf(body) ?? text.trim()}`));
  return status === 401 || status === 403 || status >= 500 ? EXIT.refused : EXIT.failed;
}

/** What else `runs watch` needs to see the runs of a tenant that is not everybody's default here. */
const keyFor = ({ isLocal }: Call, tenant: string) =>
  isLocal && tenant !== LOCAL_TENANT ? ` --key ${localOwnerKey(tenant)}` : '';

function acceptedInWords(
  { runIds, deduplicated }: { runIds?: unknown; deduplicated?: unknown },
  withKey: string,
): string[] {
  const ids = Array.isArray(runIds) ? runIds.map((runId) => printable(String(runId))) : [];
  if (ids.length === 0) return [NOTHING_STARTED];
  const first = deduplicated === true ? 'seen before, nothing was started again' : 'accepted';
  return [
    ...ids.map((runId) => `${first}: ${runId}`),
    `follow it with npx countersign runs watch ${ids[0]?.slice(0, 12)}${withKey}`,
  ];
}
