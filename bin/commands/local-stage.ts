import type { SigningSource } from '../../lambdas/intake/signing-secrets.ts';

/** The default tenant of the local host. */
export const LOCAL_TENANT = 'acme';

/** The local host uses fixed secrets. */
export function localSecret(source: SigningSource, tenant: string): string {
  const name = source.replace('/', '-');
  return tenant === LOCAL_TENANT ? `local-${name}-secret` : `local-${tenant}-${name}-secret`;
}

export const localOwnerKey = (tenant: string) =>
  tenant === LOCAL_TENANT ? 'local-owner-key' : `local-${tenant}-owner-key`;
