import { FORBIDDEN, NOT_FOUND, notSentReason, TargetRefused, UNAUTHORIZED } from '../../connectors/target-errors.ts';
import { CountersignError } from '../../run/errors.ts';

/** Codes of Node for a host name without an address. */
const NO_SUCH_HOST = ['ENOTFOUND', 'EAI_AGAIN'];

/** What is wrong with a connection whose test failed, and what to do. Never quotes the target or the credential. */
export function whyItFailed(error: unknown, baseUrl: string): string {
  if (!(error instanceof CountersignError)) throw error;
  const { host, protocol } = new URL(baseUrl);
  const code = causes(error).find((each) => typeof each === 'string' && NO_SUCH_HOST.includes(each));
  if (code !== undefined) return `DNS does not know the host ${host}: correct baseUrl`;
  const reasons = causeErrors(error).map(notSentReason);
  if (reasons.includes('untrusted')) {
    return `TLS: the certificate of ${host} is not trusted, has expired or is for another name: correct baseUrl, or have the certificate renewed`;
  }
  if (causes(error).some((each) => /^(EPROTO|ERR_SSL_)/.test(String(each)))) {
    return `TLS: ${host} does not speak ${protocol.slice(0, -1)} at this port: correct baseUrl`;
  }
  if (reasons.includes('unreachable')) return `nothing responds at ${host}: correct baseUrl, or check its firewall`;
  const status = error instanceof TargetRefused ? error.status : undefined;
  if (status === UNAUTHORIZED) {
    return `${host} rejects the credential (401): it is wrong, expired or revoked, or belongs to another instance`;
  }
  if (status === FORBIDDEN) return `${host} accepts the credential, but it lacks a permission (403)`;
  if (status === NOT_FOUND) return `${host} has no such API (404): baseUrl is wrong, or belongs to another product`;
  if (status !== undefined && status >= 300 && status < 400) {
    return `${host} redirects (${status}) to another address: use that one as baseUrl`;
  }
  return error.message;
}

function causeErrors(error: unknown): Error[] {
  if (!(error instanceof Error)) return [];
  const nested = error instanceof AggregateError ? error.errors.flatMap(causeErrors) : [];
  return [error, ...nested, ...causeErrors(error.cause)];
}

const causes = (error: unknown): unknown[] => causeErrors(error).map((each) => (each as { code?: unknown }).code);
