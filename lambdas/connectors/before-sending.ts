/** Calls of the system that come before a request is sent. */
const BEFORE_SENDING: readonly unknown[] = ['getaddrinfo', 'connect'];
/** Codes that can only come of one of these, also where the call is not named. */
const NEVER_CONNECTED: readonly unknown[] = ['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT'];
/** Node's and OpenSSL's words for a certificate that does not hold; it is looked at before anything is sent. */
const CERTIFICATE =
  /^(CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_|HOSTNAME_MISMATCH$|ERR_TLS_CERT_)/;

/**
 * Why nothing can have been sent, by the cause of a failed request; undefined if something may have been. The code alone
 * does not tell: a host may become unreachable while it is at work on what it was sent.
 */
export function beforeSending(cause: unknown): 'unreachable' | 'untrusted' | undefined {
  if (cause instanceof AggregateError && cause.errors.length > 0) {
    // One failure for each address of the host.
    return cause.errors.every((each) => beforeSending(each) === 'unreachable') ? 'unreachable' : undefined;
  }
  const { code, syscall } = cause instanceof Error ? (cause as { code?: unknown; syscall?: unknown }) : {};
  if (BEFORE_SENDING.includes(syscall) || NEVER_CONNECTED.includes(code)) return 'unreachable';
  return typeof code === 'string' && CERTIFICATE.test(code) ? 'untrusted' : undefined;
}
