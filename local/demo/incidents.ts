import { seededSysId } from '../simulators/servicenow/seed.ts';

export interface Incident {
  number: string;
  sysId: string;
}

const incident = (number: string): Incident => ({ number, sysId: seededSysId(number) });

/** Incidents of the simulated ServiceNow. */
export const DATABASE_DOWN = incident('INC0010001');
export const VPN_DROPS = incident('INC0010002');
export const EXPORT_IS_SLOW = incident('INC0010003');
export const DISPLAY_IS_DARK = incident('INC0010004');
export const BUILDS_QUEUE = incident('INC0010006');

/** Its groups, by the ids that are written. */
export const GROUPS = {
  database: seededSysId('Database'),
  network: seededSysId('Network Operations'),
  platform: seededSysId('Platform'),
};
