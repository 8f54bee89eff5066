import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Connections } from '../../../lambdas/connectors/connections.ts';
import type { Access } from '../../../lambdas/connectors/connector.ts';

/** By tenant and name; a connection without a credential is defined, but its secret has no entry. */
export type ConnectionsByTenant = Record<string, Record<string, Access>>;

export function describeConnectionsContract(
  name: string,
  open: (initially: ConnectionsByTenant) => Promise<{ connections: Connections; close(): Promise<void> }>,
): void {
  describe(`${name} as the connections`, () => {
    let connections: Connections;
    let close: () => Promise<void>;
    const github = (token: string): Access => ({
      baseUrl: 'https://api.github.com',
      instance: 'acme',
      credential: { token },
    });
    beforeEach(async () => {
      ({ connections, close } = await open({
        acme: { github: github('of-acme'), slack: { ...github(''), credential: undefined } },
        globex: { github: github('of-globex') },
      }));
    });
    afterEach(() => close());

    it('opens a connection with its address and credential', async () => {
      expect(await connections.open('acme', 'github')).toMatchObject(github('of-acme'));
    });

    it('opens a connection of its own tenant only', async () => {
      expect((await connections.open('globex', 'github')).credential).toEqual({ token: 'of-globex' });
    });

    it.each([
      ['a connection nobody defined', 'acme', 'pagerduty'],
      ['a connection without a credential', 'acme', 'slack'],
      ['a tenant of another stage', 'initech', 'github'],
    ])('says that %s is missing', async (_what, tenant, named) => {
      await expect(connections.open(tenant, named)).rejects.toMatchObject({ code: 'CONNECTION_MISSING' });
    });
  });
}
