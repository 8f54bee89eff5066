import { isIP } from 'node:net';
import type { Access } from '../connector.ts';
import { TargetRefused } from '../exchange.ts';
import { type Address, addressOf, publicAddresses, type Resolve } from './public-address.ts';

export interface Destination {
  url: URL;
  /** As the allow list and the credential name it: `api.example.com`, with a port that is not the usual one. */
  host: string;
  /** Checked; nothing else may be connected to. */
  addresses: Address[];
}

/** Where a request may go: to an allow-listed host over TLS at a public address, or to the local host's own port. */
export async function destinationOf(plainUrl: string, access: Access, resolve: Resolve): Promise<Destination> {
  const url = new URL(plainUrl);
  const { host, hostname, protocol } = url;
  if (!access.allowedHosts?.includes(host)) {
    throw new TargetRefused(`${host} is not allowed; add it to allowedHosts of the connection "http"`, {
      retryable: false,
    });
  }
  if (isOwnPort(url, access)) return { url, host, addresses: [addressOf(hostname)] };
  if (protocol !== 'https:') throw new TargetRefused(`${host} must be reached by https`, { retryable: false });
  return { url, host, addresses: await publicAddresses(hostname, resolve) };
}

/** A deployed stage answers at a name; only the local host's own address is a number, and only that one is let through. */
function isOwnPort(url: URL, { ownUrl }: Access): boolean {
  return isIP(url.hostname) !== 0 && ownUrl !== undefined && new URL(ownUrl).origin === url.origin;
}
