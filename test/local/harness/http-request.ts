import { Agent, request } from 'node:http';

const agent = new Agent({ keepAlive: true });

export interface HttpAnswer {
  status: number;
  headers: Headers;
  text: string;
}

/** One request to a host. `fetch` would use a multiple of the CPU time, in the thread of the host that is tested or measured. */
export function httpRequest(
  url: string,
  { method, headers, body = '' }: { method: string; headers: Record<string, string>; body?: string | undefined },
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const length = { 'content-length': String(Buffer.byteLength(body)) };
    const sent = request(url, { method, headers: { ...(body && length), ...headers }, agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () => {
        const received = new Headers();
        for (const [name, values = []] of Object.entries(response.headersDistinct)) {
          for (const value of values) received.append(name, value);
        }
        resolve({ status: response.statusCode ?? 0, headers: received, text: Buffer.concat(chunks).toString('utf8') });
      });
    });
    sent.once('error', reject);
    sent.end(body);
  });
}
