import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Passes TCP connections on to a port of this machine, until a test cuts them. */
export class CuttableProxy {
  /** The port to connect to. A proxy without one refuses connections. */
  target: number | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((incoming) => {
    if (this.target === undefined) return void incoming.destroy();
    const outgoing = connect(this.target, '127.0.0.1');
    for (const [socket, other] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      this.#sockets.add(socket);
      socket.pipe(other);
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
  });

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Ends all connections, and refuses others. */
  cut(): void {
    this.target = undefined;
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
