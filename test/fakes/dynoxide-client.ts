import { connect, type Socket } from 'node:net';
import { DynamoDBClient, type DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';

/** The engine reads these headers, and does not check the signature. */
const UNSIGNED = {
  authorization: `AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=${'0'.repeat(64)}`,
  'x-amz-date': '20260101T000000Z',
};

interface Request {
  method: string;
  hostname: string;
  port?: number;
  path: string;
  headers: Record<string, string>;
  body?: string | Uint8Array;
}

interface Response {
  statusCode: number;
  headers: Record<string, string>;
  body: Uint8Array;
}

const END_OF_HEAD = '\r\n\r\n';

/** HTTP/1.1 for this engine only: every response has its length. */
class Connections {
  readonly metadata = { handlerProtocol: 'http/1.1' };
  readonly #free = new Set<Socket>();

  async handle(request: Request): Promise<{ response: Response }> {
    const [unused] = this.#free;
    const socket = unused ?? this.#connect(request);
    this.#free.delete(socket);
    const response = await exchange(socket, request);
    if (!socket.destroyed) this.#free.add(socket);
    return { response };
  }

  #connect({ hostname, port = 80 }: Request): Socket {
    const socket = connect({ host: hostname, port, noDelay: true });
    // An error closes the socket.
    socket.on('error', () => undefined);
    socket.on('close', () => this.#free.delete(socket));
    return socket;
  }

  destroy(): void {
    for (const socket of this.#free) socket.destroy();
  }

  updateHttpClientConfig(): void {}

  httpHandlerConfigs(): object {
    return {};
  }
}

function exchange(socket: Socket, request: Request): Promise<Response> {
  return new Promise((resolve, reject) => {
    let received: Buffer = Buffer.alloc(0);
    const receive = (chunk: Buffer) => {
      received = received.length > 0 ? Buffer.concat([received, chunk]) : chunk;
      const response = responseIn(received);
      if (!response) return;
      socket.off('data', receive).off('close', hangUp);
      resolve(response);
    };
    // The SDK sends again after an error with this code.
    const hangUp = () => reject(Object.assign(new Error('the engine hung up'), { code: 'ECONNRESET' }));
    socket.on('data', receive).once('close', hangUp);
    socket.write(bytesOf(request));
  });
}

function bytesOf({ method, path, headers, body = '' }: Request): Buffer {
  const content = typeof body === 'string' ? Buffer.from(body) : body;
  const sent = { ...headers, 'content-length': String(content.length) };
  const lines = Object.entries(sent).map(([name, value]) => `${name}: ${value}`);
  return Buffer.concat([Buffer.from([`${method} ${path} HTTP/1.1`, ...lines].join('\r\n') + END_OF_HEAD), content]);
}

/** Undefined until all bytes have arrived. */
function responseIn(received: Buffer): Response | undefined {
  const headEnds = received.indexOf(END_OF_HEAD);
  if (headEnds < 0) return undefined;
  const [status = '', ...lines] = received.toString('latin1', 0, headEnds).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => {
      const [name = '', value = ''] = line.split(/:\s*(.*)/s);
      return [name.toLowerCase(), value];
    }),
  );
  const length = Number(headers['content-length']);
  if (!Number.isInteger(length)) throw new Error(`a response without its length: ${status}`);
  const body = received.subarray(headEnds + END_OF_HEAD.length);
  return body.length < length ? undefined : { statusCode: Number(status.split(' ')[1]), headers, body };
}

/**
 * A client of the SDK that signs nothing, and sends each request with few objects and one write. Signatures and the HTTP
 * client of Node.js take half of the CPU time of a request, and these tests send thousands.
 */
export function dynoxideClient(url: string): DynamoDBClient {
  const signer = {
    sign: async <Signed extends { headers: Record<string, string> }>(request: Signed) => {
      Object.assign(request.headers, UNSIGNED);
      return request;
    },
  };
  return new DynamoDBClient({
    endpoint: url,
    region: 'us-east-1',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    signer,
    requestHandler: new Connections(),
  } as unknown as DynamoDBClientConfig);
}
