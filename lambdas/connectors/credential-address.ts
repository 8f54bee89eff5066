/** The member of a stored credential that names the address it is for. */
const ADDRESS = 'forAddress';

/** The hosts of an http credential are part of it. */
const HAS_ITS_OWN_HOSTS = 'http';

const originOf = (baseUrl: string): string => new URL(baseUrl).origin;

/**
 * A stored credential names its address. Otherwise everybody who may change the address of a connection could read the
 * credential, by having it sent to a host of their own.
 */
export const withAddress = (connection: string, credential: object, baseUrl: string): object =>
  connection === HAS_ITS_OWN_HOSTS ? credential : { ...credential, [ADDRESS]: originOf(baseUrl) };

/** The credential itself. A credential that an operator wrote directly names no address. */
export function withoutAddress(stored: unknown): { credential: unknown; address?: string } {
  if (typeof stored !== 'object' || stored === null || Array.isArray(stored)) return { credential: stored };
  const { [ADDRESS]: address, ...credential } = stored as Record<string, unknown>;
  return { credential, ...(typeof address === 'string' && { address }) };
}

/** Whether a credential may be sent to this address. */
export const isFor = (address: string | undefined, baseUrl: string): boolean =>
  address === undefined || address === originOf(baseUrl);
