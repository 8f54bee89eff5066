import { type Clock, isoNow } from '../../entry/ports.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import type { Credentials } from '../../setup/credentials.ts';
import { examine, type TenantState } from '../../setup/doctor.ts';
import type { doctorRoutes } from '../contract/setup/doctor.ts';
import type { Handlers } from '../router.ts';

/** More would make the response too long to act on. */
const FINDINGS_MAX = 200;
const PENDING_MAX = 100;

export interface DoctorPorts {
  definitions: Pick<
    Definitions,
    | 'people'
    | 'connections'
    | 'settings'
    | 'automations'
    | 'sources'
    | 'workflow'
    | 'workflowVersions'
    | 'pendingChanges'
  >;
  credentials: Pick<Credentials, 'describe'>;
  keysOf(tenant: string): Promise<TenantState['keys']>;
  kind: TenantState['kind'];
  stage: { name: string; version: string; hasAlarmReceiver: boolean };
  clock: Clock;
}

export const doctorHandlers: Handlers<DoctorPorts, typeof doctorRoutes> = {
  async examineTenant(ports, { caller: { tenant } }) {
    const { definitions, kind, stage } = ports;
    const [people, connections, credentials, settings, automations, sources, keys, pending] = await Promise.all([
      definitions.people(tenant),
      definitions.connections(tenant),
      ports.credentials.describe({ tenant }),
      definitions.settings(tenant),
      automationsOf(ports, tenant),
      definitions.sources(tenant),
      ports.keysOf(tenant),
      definitions.pendingChanges(tenant, { limit: PENDING_MAX }),
    ]);
    const now = isoNow(ports.clock);
    const findings = examine({
      tenant,
      kind,
      hasAlarmReceiver: stage.hasAlarmReceiver,
      now,
      people,
      connections,
      credentials,
      settings,
      automations,
      sources,
      keys,
      pendingChanges: pending.filter(({ expiresAt }) => expiresAt > now).length,
    });
    return {
      status: 200,
      body: { tenant, stage: stage.name, kind, version: stage.version, findings: findings.slice(0, FINDINGS_MAX) },
    };
  },
};

async function automationsOf({ definitions }: DoctorPorts, tenant: string): Promise<TenantState['automations']> {
  const automations = await definitions.automations(tenant);
  return Promise.all(
    automations.map(async (automation) => {
      const { name, version } = automation.workflow;
      const workflow = await definitions.workflow(tenant, name, version);
      const [newest] = workflow ? [] : await definitions.workflowVersions(tenant, name, { limit: 1 });
      return { automation, workflow, newest: newest?.version };
    }),
  );
}
