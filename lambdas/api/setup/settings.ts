import { Problem } from '../../entry/http.ts';
import type { Clock, Ids } from '../../entry/ports.ts';
import { CHANGES_SEEN_WITHIN_MS } from '../../pipeline/cached-definitions.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { hashOf } from '../../run/canonical-json.ts';
import type { TenantSettings } from '../../run/settings/caps.ts';
import { FLAGS, type FlagValues, flagsInEffect } from '../../run/settings/flags.ts';
import { type Caller, requireRight } from '../authorizer/caller.ts';
import type { settingsRoutes } from '../contract/setup/settings.ts';
import { authorOf } from '../definitions/change-person.ts';
import type { Handlers } from '../router.ts';

export interface SettingsPorts {
  definitions: Pick<Definitions, 'settings' | 'saveSettings'>;
  kind: 'prod' | 'staging' | 'dev';
  /** The flags that the stage sets. */
  stageFlags: FlagValues;
  clock: Clock;
  ids: Ids;
}

export const settingsHandlers: Handlers<SettingsPorts, typeof settingsRoutes> = {
  async getSettings({ definitions, stageFlags }, { caller: { tenant } }) {
    return { status: 200, body: withFlags(await definitions.settings(tenant), stageFlags) };
  },

  async saveSettings(ports, { caller, body }) {
    const { counterShards, issuers = [] } = await ports.definitions.settings(caller.tenant);
    if (hashOf(issuers) !== hashOf(body.issuers ?? [])) assertMayChangeIssuers(ports, caller);
    const settings = { ...body, counterShards };
    await ports.definitions.saveSettings(caller.tenant, settings, authorOf(ports, caller));
    const effectiveWithinSeconds = CHANGES_SEEN_WITHIN_MS / 1000;
    return { status: 200, body: { ...withFlags(settings, ports.stageFlags), effectiveWithinSeconds } };
  },
};

const withFlags = (settings: TenantSettings, stage: FlagValues) => ({
  ...settings,
  flags: flagsInEffect(settings.features, stage).map((flag) => ({ ...flag, whenOff: FLAGS[flag.name].whenOff })),
});

/** An issuer signs in any person of the tenant, so the people who control it could decide in the name of others. */
function assertMayChangeIssuers({ kind }: SettingsPorts, caller: Caller): void {
  requireRight(caller, 'settings:issuers');
  if (kind !== 'prod') return;
  throw new Problem(403, 'FORBIDDEN', 'a prod stage has its issuers in cdk.json (`issuers` of the stage); deploy it');
}
