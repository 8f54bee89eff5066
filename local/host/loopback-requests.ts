import type { IncomingMessage, ServerResponse } from 'node:http';

/** Names of this machine. A bucket may stand before `localhost`, which never leaves the machine either. */
const LOOPBACK = /^(127\.0\.0\.1|\[::1\]|([a-z0-9-]+\.)*localhost)(:\d{1,5})?$/i;

/**
 * Why a request to the local port is not served. The port has no password, so a web page in the developer's browser must not
 * reach it: not by a name of its own that resolves to this machine (DNS rebinding; the header Host has that name), and not
 * by a request across sites (Origin and Sec-Fetch-Site, which a page cannot set). Command lines send neither of the two.
 */
export function foreignRequest({ headers, method }: Pick<IncomingMessage, 'headers' | 'method'>): string | undefined {
  const { host = '', origin } = headers;
  if (!LOOPBACK.test(host)) {
    return `the header Host says "${host}"; this port serves 127.0.0.1 and localhost only`;
  }
  if (origin !== undefined && origin !== `http://${host}`) {
    return `the header Origin says "${origin}"; pages of other sites may not use this port, only http://${host}`;
  }
  // Somebody follows a link to a page here: the other site cannot read what comes.
  const isLink =
    method === 'GET' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  const site = headers['sec-fetch-site'];
  if ((site === 'cross-site' || site === 'same-site') && !isLink) {
    return 'the request comes from a page of another site (Sec-Fetch-Site); open this one in a window of its own';
  }
  return undefined;
}

/** Answers what must not be served; true if it did. */
export function turnAway(request: IncomingMessage, response: ServerResponse): boolean {
  const reason = foreignRequest(request);
  if (reason === undefined) return false;
  response.writeHead(403, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' }).end(`${reason}\n`);
  request.resume();
  return true;
}
