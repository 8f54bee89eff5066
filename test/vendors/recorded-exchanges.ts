import { vi } from 'vitest';

/** One request as sent, and its response as received. */
export interface RecordedExchange {
  method: string;
  url: URL;
  headers: Headers;
  /** Parsed JSON, the fields of a form, or undefined. */
  body: unknown;
  status: number;
  answerHeaders: Headers;
  answer: unknown;
}

export interface Recording {
  exchanges: RecordedExchange[];
  stop(): void;
}

/** Every request of this process through `fetch`, from now on. The response is read twice: here and by the caller. */
export function recordExchanges(): Recording {
  const exchanges: RecordedExchange[] = [];
  const send = globalThis.fetch;
  const spy = vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init = {}) => {
    const response = await send(input, init);
    const text = await response.clone().text();
    exchanges.push({
      method: init.method ?? 'GET',
      url: new URL(String(input)),
      headers: new Headers(init.headers),
      body: bodyOf(init.body),
      status: response.status,
      answerHeaders: response.headers,
      answer: text === '' ? undefined : JSON.parse(text),
    });
    return response;
  });
  return { exchanges, stop: () => spy.mockRestore() };
}

function bodyOf(body: RequestInit['body']): unknown {
  if (body === undefined || body === null) return undefined;
  return body instanceof URLSearchParams ? Object.fromEntries(body) : JSON.parse(String(body));
}
