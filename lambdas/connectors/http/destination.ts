import { isIP } from 'node:net';
import type { Access } from '../connector.ts';
import { TargetRefused } from '../target-errors.ts';
import { type Address, addressOf, publicAddresses, type Resolve } from './public-address.ts';

export interface Destination {
  url: URL;
  /** As in the allow list and the credential: `api.example.com`, with the port if it is not the default. */
  host: string;
  /** Checked. Connect to no other address. */
  addresses: Address[];
}

/** Checks where a request goes: to an allowed host over TLS at a public address, or to the local host's own port. */
export async function destinationOf(plainUrl: string, access: Access, resolve: Resolve): Promise<Destination> {
  const url = new URL(plainUrl);
  const { host, hostname, protocol } = url;
  if (!access.allowedHosts?.includes(host)) {
    throw new TargetRefused(`${host} is not allowed; add it to allowedHosts of the connection "http"`, {
      retryable: false,
    });
  }
  if (isOwnPort(url, access)) return { url, host, addresses: [addressOf(hostname)] };
  if (protocol !== 'https:') throw new TargetRefused(`${host} must be called with https`, { retryable: false });
  return { url, host, addresses: await publicAddresses(hostname, resolve) };
}

/** A deployed stage has a host name, so an IP address as `ownUrl` is that of the local host. */
function isOwnPort(url: URL, { ownUrl }: Access): boolean {
  return isIP(url.hostname) !== 0 && ownUrl !== undefined && new URL(ownUrl).origin === url.origin;
}
