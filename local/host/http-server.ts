import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { HttpApi } from '../api-gateway/http-api.ts';
import type { WebSocketApi } from '../api-gateway/websocket-api.ts';
import type { ConsoleSite } from '../cloud/console-site.ts';
import { ISSUER_PATH, type LocalIssuer } from '../oidc/local-issuer.ts';
import type { Simulators } from '../simulators/simulators.ts';
import type { ControlApi } from './control-api.ts';
import { listenOnLoopback, refuseForeign } from './loopback-requests.ts';

interface HttpServer {
  url: string;
  /** Starts to serve requests. Requests that arrived earlier have waited. */
  open(handlers: Handlers): void;
  stop(): Promise<void>;
}

interface Handlers {
  api: HttpApi;
  sockets: WebSocketApi;
  control: ControlApi;
  simulators: Simulators;
  issuer: LocalIssuer;
  /** Undefined if the stage has no console. */
  console: ConsoleSite | undefined;
}

/** The HTTP port of the host: the HTTP API and the console of the template, the simulators, the OIDC issuer, and the control API. */
export async function startHttpServer(port: number): Promise<HttpServer> {
  const { promise: opened, resolve: open } = Promise.withResolvers<Handlers>();
  const server = createServer((request, response) => {
    if (refuseForeign(request, response)) return;
    opened
      .then((handlers) => route(handlers, request, response))
      .catch((error: unknown) => {
        console.error(error);
        if (!response.headersSent) response.writeHead(500, { 'content-type': 'text/plain' });
        response.end('the local host failed; its terminal shows the error\n');
      });
  });
  server.on('upgrade', (request, socket, head) => {
    opened
      .then(({ sockets }) => sockets.upgrade(request, socket, head))
      .catch((error: unknown) => {
        console.error(error);
        socket.destroy();
      });
  });
  const listening = listenOnLoopback(server, port).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new Error(`port ${port} is in use; stop the other program, or run: npm start -- --port ${port + 1}`);
  });
  return { open, ...(await listening) };
}

async function route(
  { api, control, simulators, issuer, console }: Handlers,
  request: IncomingMessage,
  response: ServerResponse,
) {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost');
  if (pathname === '/_sim' || pathname.startsWith('/_sim/')) return simulators.handle(request, response);
  if (pathname.startsWith(`${ISSUER_PATH}/`)) return issuer.handle(request, response);
  if (pathname.startsWith('/_local/')) return control.handle(request, response);
  if (console?.serves(request.method, pathname)) return console.handle(request, response);
  if (pathname === '/') return response.writeHead(302, { location: '/_sim' }).end();
  return api.handle(request, response);
}
