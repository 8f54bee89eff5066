import {
  ApiClient,
  ApiError,
  type Credentials,
  NoResponse,
  type RawResponse,
  type RequestFor,
  type ResponseFrom,
  type RouteKey,
  send,
} from '../../client/api-client.ts';
import { EXIT, Failure, UsageError } from '../commands/failure.ts';

export type RunPage = ResponseFrom<'GET /api/v1/runs'>;
export type RunSummary = RunPage['runs'][number];
export type RunDetail = ResponseFrom<'GET /api/v1/runs/{id}'>;
export type ShownStep = RunDetail['steps'][number];
export type ShownAction = ResponseFrom<'GET /api/v1/runs/{id}/actions'>['actions'][number];
export type ShownReceipt = RunDetail['receipts'][number];
export type ShownApproval = ResponseFrom<'GET /api/v1/approvals'>['approvals'][number];
export type RunEvents = ResponseFrom<'GET /api/v1/runs/{id}/events'>;
export type Decided = ResponseFrom<'POST /api/v1/approvals/{id}/decision'>;
/** A changed person, or the change that waits for a second owner. */
export type PersonChanged = ResponseFrom<'PUT /api/v1/people/{id}'>;
/** The new policies and the ones they replace. */
export type PublishedPolicies = Exclude<ResponseFrom<'PUT /api/v1/policies'>, { pending: unknown }>;
export type StuckEntry = ResponseFrom<'POST /api/v1/outbox/redrive'>['entries'][number];

/** A retry may help. */
export class Unavailable extends Failure {
  constructor(message: string, options?: { cause?: unknown }) {
    super(EXIT.refused, message, options);
  }
}

/** The API as commands call it: each error becomes a message for the person and an exit code. */
export class Api {
  readonly #client: ApiClient;

  constructor({ url, headers }: { url: string; headers: Credentials }) {
    this.#client = new ApiClient(url, headers);
  }

  /** For example `api.call('GET /api/v1/runs/{id}', { params: { id } })`. The types know every route of the contract. */
  readonly call: ApiClient['call'] = (key, ...request) =>
    this.#client.call(key, ...request).catch((error) => {
      throw asFailure(error, this.#client.url);
    });

  /** As `call`, and whether the request created something: not if the same request did so before. */
  readonly create: ApiClient['create'] = (key, ...request) =>
    this.#client.create(key, ...request).catch((error) => {
      throw asFailure(error, this.#client.url);
    });

  /** The bytes of a file that a route returns. */
  download<Key extends RouteKey>(key: Key, request: RequestFor<Key>): Promise<Uint8Array> {
    return this.#client.download(key, request).catch((error) => {
      throw asFailure(error, this.#client.url);
    });
  }
}

/** Sends a request that no API key identifies. */
export function sendTo(url: string, path: string, init: RequestInit): Promise<RawResponse> {
  return send(url, path, init).catch((error) => {
    throw asFailure(error, url);
  });
}

function asFailure(error: unknown, url: string): unknown {
  if (error instanceof ApiError) return refusal(error, url);
  if (!(error instanceof NoResponse)) return error;
  const { cause, afterMs } = error;
  return new Unavailable(
    afterMs === undefined
      ? `nothing responds at ${url}; start the local host with npm start, or pass the URL of a stage with --url`
      : `${url} did not respond within ${afterMs / 1000} s; try again, or pass the URL of a stage with --url`,
    { cause },
  );
}

function refusal({ status, message: problem }: ApiError, url: string): Failure {
  // A 403 with a problem text: the credential was accepted, but the person lacks a right or policy denies.
  if (status === 401 || (status === 403 && problem === '')) {
    const reason = problem || 'pass a valid one with --key or COUNTERSIGN_API_KEY, or run countersign login';
    return new Failure(EXIT.refused, `${url} rejected the credential: ${reason}`);
  }
  if (status >= 500 || status === 429) {
    return new Unavailable(`${url} responded with ${status}${problem ? `: ${problem}` : '; try again in a moment'}`);
  }
  if (problem === '') {
    return new Failure(EXIT.refused, `${url} is not a Countersign API (it responded with ${status}); check --url`);
  }
  return status === 400 ? new UsageError(problem) : new Failure(EXIT.failed, problem);
}
