import type { Access } from '../../connectors/connector.ts';
import { destinationOf } from '../../connectors/http/destination.ts';
import { systemResolve } from '../../connectors/http/public-address.ts';
import { httpCredential } from '../../connectors/http/request.ts';
import { sendToChecked } from '../../connectors/http/send.ts';
import { CountersignError } from '../../run/errors.ts';
import type { Observed } from './test-connection.ts';
import { whyItFailed } from './why-it-failed.ts';

const REFUSING_STATUSES = [401, 403];

/** Asks every allowed host for its first page, with its secret headers. */
export async function testHttp(access: Access): Promise<Observed[]> {
  const { hosts } = httpCredential(access);
  const allowed = access.allowedHosts ?? [];
  if (allowed.length === 0)
    return [{ level: 'warning', text: 'allowedHosts is empty: the http tools can call nothing' }];
  const unused = Object.keys(hosts).filter((host) => !allowed.includes(host));
  return [
    ...(await Promise.all(allowed.map((host) => testHost(access, host, hosts[host]?.headers)))),
    ...unused.map((host) => ({ level: 'warning' as const, text: `${host} has headers, and is not in allowedHosts` })),
  ];
}

async function testHost(access: Access, host: string, headers: Record<string, string> = {}): Promise<Observed> {
  const isOwn = access.ownUrl !== undefined && new URL(access.ownUrl).host === host;
  const url = `${isOwn ? new URL(access.ownUrl ?? '').origin : `https://${host}`}/`;
  try {
    const destination = await destinationOf(url, access, systemResolve);
    const { status } = await sendToChecked({ destination, method: 'GET', headers, body: undefined });
    if (!REFUSING_STATUSES.includes(status)) return { level: 'ok', text: `${host} responds (${status})` };
    return { level: 'warning', text: `${host} rejects a request for its first page (${status}): check its headers` };
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    return { level: 'error', text: whyItFailed(error, url) };
  }
}
