import { type AttemptDeadline, withinDeadline } from '../../connectors/attempt-deadline.ts';
import { destinationOf } from '../../connectors/http/destination.ts';
import { type Resolve, systemResolve } from '../../connectors/http/public-address.ts';
import { type Send, sendToChecked } from '../../connectors/http/send.ts';
import { parseJson } from '../../entry/parse-json.ts';
import type { FetchJson } from './issuer-keys.ts';

/** The authorizer needs two of these, and API Gateway waits for it. */
const TIMEOUT_MS = 3_000;
const DEADLINE: AttemptDeadline = { allowMs: () => TIMEOUT_MS, requestNotSent: () => {} };

interface Network {
  /** The URL of this stage. The local host has its issuer there. */
  ownUrl: string;
  resolve?: Resolve;
  send?: Send;
}

/**
 * Reads a document of an issuer: over TLS, at a public address, without redirects, of at most 64 KB. A tenant names its own
 * issuers, so they must not lead to addresses that only we can reach.
 */
export const fetchIssuerJson =
  ({ ownUrl, resolve = systemResolve, send = sendToChecked }: Network): FetchJson =>
  async (url) => {
    const access = { baseUrl: url, instance: '', credential: undefined, allowedHosts: [new URL(url).host], ownUrl };
    const destination = await destinationOf(url, access, resolve);
    const request = { destination, method: 'GET', headers: { accept: 'application/json' }, body: undefined };
    const { status, text, truncated } = await withinDeadline(DEADLINE, () => send(request));
    if (status !== 200) throw new Error(`${destination.host} responded with ${status}`);
    if (truncated) throw new Error(`the response of ${destination.host} is too large`);
    return parseJson(text);
  };
