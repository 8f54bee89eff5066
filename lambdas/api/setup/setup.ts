import type { Contract } from '../contract/index.ts';
import { connectionRoutes, webhookSecretRoutes } from '../contract/setup/connections.ts';
import { doctorRoutes } from '../contract/setup/doctor.ts';
import { settingsRoutes } from '../contract/setup/settings.ts';
import { router } from '../router.ts';
import { type ConnectionsPorts, connectionHandlers } from './connections.ts';
import { type DoctorPorts, doctorHandlers } from './doctor.ts';
import { type SettingsPorts, settingsHandlers } from './settings.ts';
import { type WebhookSecretsPorts, webhookSecretHandlers } from './webhook-secrets.ts';

export type SetupPorts = ConnectionsPorts & WebhookSecretsPorts & SettingsPorts & DoctorPorts;

const routes = { ...connectionRoutes, ...webhookSecretRoutes, ...settingsRoutes, ...doctorRoutes };

/** The routes with which owners and admins set up their tenant. */
export const handleSetup = router<SetupPorts, Contract['setup']>(routes, {
  ...connectionHandlers,
  ...webhookSecretHandlers,
  ...settingsHandlers,
  ...doctorHandlers,
});
