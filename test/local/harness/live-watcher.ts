import { WebSocket } from 'ws';
import type { LiveEvent } from '../../../lambdas/live/live-event.ts';
import type { ServerMessage } from '../../../lambdas/live/messages.ts';
import { eventually } from './eventually.ts';
import { ACME_KEY, type HostClient } from './host-client.ts';

interface TicketBody {
  url: string;
  ticket: string;
  connectionSeconds: number;
}

export const liveTicket = async (host: HostClient, key = ACME_KEY): Promise<TicketBody> =>
  (await host.command<TicketBody>('/live/ticket', {}, key)).body as TicketBody;

/** A client of the live feed that only remembers what it received. */
export class LiveWatcher {
  readonly messages: ServerMessage[] = [];
  readonly #socket: WebSocket;
  closedWith: number | undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data) => this.messages.push(JSON.parse(String(data))));
    socket.on('close', (code) => {
      this.closedWith = code;
    });
    socket.on('error', () => undefined);
  }

  /** The HTTP status if the connection is refused. */
  static async open(url: string, headers: Record<string, string> = {}): Promise<LiveWatcher | number> {
    const socket = new WebSocket(url, { headers });
    const watcher = new LiveWatcher(socket);
    return new Promise((resolve, reject) => {
      socket.once('error', reject);
      socket.once('open', () => resolve(watcher));
      socket.once('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0));
    });
  }

  static async with(host: HostClient, key = ACME_KEY): Promise<LiveWatcher> {
    const { url, ticket } = await liveTicket(host, key);
    const opened = await LiveWatcher.open(`${url}?ticket=${ticket}`);
    if (typeof opened === 'number') throw new Error(`the connection was refused: ${opened}`);
    return opened;
  }

  send(message: unknown): void {
    this.#socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  /** Sends a message and waits for the next one of these types. */
  async ask(message: unknown, ...types: ServerMessage['type'][]): Promise<ServerMessage> {
    const before = this.messages.length;
    this.send(message);
    return eventually(`one of ${types.join(', ')}`, async () =>
      this.messages.slice(before).find(({ type }) => types.includes(type)),
    );
  }

  subscribe(runId?: string, lastEventId?: string | string[]): Promise<ServerMessage> {
    const message = { action: 'subscribe', run_id: runId, last_event_id: lastEventId };
    return this.ask(message, 'subscribed', 'error');
  }

  get events(): LiveEvent[] {
    return this.messages.flatMap((message) => (message.type === 'events' ? message.events : []));
  }

  get eventNames(): string[] {
    return this.events.map(({ event }) => event);
  }

  has(event: string): Promise<LiveEvent> {
    return eventually(`the event ${event}`, async () => this.events.find((each) => each.event === event), {
      lastSeen: () => JSON.stringify(this.messages.slice(-3)),
    });
  }

  close(): void {
    this.#socket.close();
  }
}
