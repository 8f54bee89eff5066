import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HttpApi } from '../api-gateway/http-api.ts';
import type { Simulators } from '../simulators/simulators.ts';
import type { LocalControl } from './control-api.ts';
import { turnAway } from './loopback-requests.ts';

export interface World {
  url: string;
  /** Lets requests through; those that came before wait at the door. */
  open(behind: Behind): void;
  stop(): Promise<void>;
}

interface Behind {
  api: HttpApi;
  control: LocalControl;
  simulators: Simulators;
}

/** The port for the world: the template's HTTP API, the simulators of the outside, and the host's own controls. */
export async function startWorld(port: number): Promise<World> {
  const { promise: opened, resolve: open } = Promise.withResolvers<Behind>();
  const server = createServer((request, response) => {
    if (turnAway(request, response)) return;
    opened
      .then((behind) => route(behind, request, response))
      .catch((error: unknown) => {
        console.error(error);
        if (!response.headersSent) response.writeHead(500, { 'content-type': 'text/plain' });
        response.end('the local host failed; its terminal says why\n');
      });
  });
  // Clients keep connections open; closing an idle one just as it is reused would look like a fault nobody injected.
  server.keepAliveTimeout = 0;
  await listen(server, port);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    open,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function route({ api, control, simulators }: Behind, request: IncomingMessage, response: ServerResponse) {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost');
  if (pathname === '/_sim' || pathname.startsWith('/_sim/')) return simulators.handle(request, response);
  if (pathname.startsWith('/_local/')) return control.handle(request, response);
  if (pathname === '/') return response.writeHead(302, { location: '/_sim' }).end();
  return api.handle(request, response);
}

function listen(server: ReturnType<typeof createServer>, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') return reject(error);
      reject(
        new PortTaken(`port ${port} is taken; stop what uses it, or choose another: npm start -- --port ${port + 1}`),
      );
    });
    server.listen(port, '127.0.0.1', () => resolve());
  });
}

class PortTaken extends Error {}
