import { PROFILE_NAMES, type ProfileName } from '../../agents/agent-terms.ts';
import { builtInProfile, PROFILES, type ProfileDefinition } from '../../agents/profiles.ts';
import { Problem } from '../../entry/http.ts';
import type { Clock, Ids } from '../../entry/ports.ts';
import { CHANGES_SEEN_WITHIN_MS } from '../../pipeline/cached-definitions.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import type { profileRoutes } from '../contract/agents.ts';
import { authorOf } from '../definitions/change-person.ts';
import type { Handlers } from '../router.ts';

export interface ProfilesPorts {
  definitions: Pick<Definitions, 'profiles' | 'saveProfile'>;
  clock: Clock;
  ids: Ids;
}

export const profileHandlers: Handlers<ProfilesPorts, typeof profileRoutes> = {
  async listProfiles({ definitions }, { caller: { tenant } }) {
    const defined = await definitions.profiles(tenant);
    return { status: 200, body: { profiles: PROFILE_NAMES.map((name) => viewOf(name, defined)) } };
  },

  async getProfile({ definitions }, { caller: { tenant }, params: { name } }) {
    return { status: 200, body: viewOf(name, await definitions.profiles(tenant)) };
  },

  async saveProfile(ports, { caller, params: { name }, body }) {
    if (body.name !== undefined && body.name !== name) {
      throw new Problem(400, 'BAD_REQUEST', `the body has the name ${body.name}, the path has ${name}`);
    }
    if (!PROFILES[name].needsAllowed && body.allow.length > 0) {
      throw new Problem(
        400,
        'BAD_REQUEST',
        `allow: ${name} allows everything that its deny list does not name; leave it out`,
      );
    }
    const profile = { ...body, name };
    await ports.definitions.saveProfile(caller.tenant, profile, authorOf(ports, caller));
    const effectiveWithinSeconds = CHANGES_SEEN_WITHIN_MS / 1000;
    return { status: 200, body: { ...viewOf(name, [profile]), effectiveWithinSeconds } };
  },
};

function viewOf(name: ProfileName, defined: readonly ProfileDefinition[]) {
  const own = defined.find((profile) => profile.name === name);
  const { allow, deny } = own ?? builtInProfile(name);
  const { environment, needsAllowed, needsRollback } = PROFILES[name];
  return {
    name,
    environment,
    allow: needsAllowed ? allow : null,
    deny,
    rollbackRequired: needsRollback,
    builtIn: own === undefined,
  };
}
