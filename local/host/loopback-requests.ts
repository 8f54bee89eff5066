import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Names of this machine. `bucket.localhost` also stays on this machine. */
const LOOPBACK = /^(127\.0\.0\.1|\[::1\]|([a-z0-9-]+\.)*localhost)(:\d{1,5})?$/i;

/**
 * Why a request to the local port is refused. The port has no password, so web pages in the developer's browser must not use
 * it: neither with their own name that resolves to this machine (DNS rebinding, visible in the header Host) nor with a
 * cross-site request (visible in Origin and Sec-Fetch-Site, which a page cannot set). Command lines send neither of the two.
 */
export function foreignRequest({ headers, method }: Pick<IncomingMessage, 'headers' | 'method'>): string | undefined {
  const { host = '', origin } = headers;
  if (!LOOPBACK.test(host)) {
    return `the header Host is "${host}"; this port serves only 127.0.0.1 and localhost`;
  }
  if (origin !== undefined && origin !== `http://${host}`) {
    return `the header Origin is "${origin}"; only pages of http://${host} may use this port`;
  }
  // A person follows a link to this page. The other site cannot read the response.
  const isLink =
    method === 'GET' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  const site = headers['sec-fetch-site'];
  if ((site === 'cross-site' || site === 'same-site') && !isLink) {
    return 'a page of another site sent this request (Sec-Fetch-Site); open this URL directly';
  }
  return undefined;
}

/** Refuses a foreign request. Returns true if it did. */
export function refuseForeign(request: IncomingMessage, response: ServerResponse): boolean {
  const reason = foreignRequest(request);
  if (reason === undefined) return false;
  response.writeHead(403, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' }).end(`${reason}\n`);
  request.resume();
  return true;
}

/** Serves a port of this machine; 0, the default, is any free one. */
export async function listenOnLoopback(server: Server, port = 0): Promise<{ url: string; stop(): Promise<void> }> {
  // Clients reuse connections. Closing an idle one at the moment of its reuse would look like an injected fault.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
