import { stableId } from '../store.ts';

/** A row of any table: ServiceNow stores and returns every value as text. */
export type Row = Record<string, string>;

export const seededSysId = (name: string): string => stableId(`servicenow:${name}`, 32);

const group = (name: string, description: string): Row => ({
  sys_id: seededSysId(name),
  name,
  description,
  active: 'true',
});

export const SEEDED_GROUPS: readonly Row[] = [
  group('Network Operations', 'Routers, firewalls, VPN and DNS'),
  group('Database', 'PostgreSQL and Oracle clusters'),
  group('Service Desk', 'First line'),
  group('Platform', 'Kubernetes, CI and shared services'),
];

const user = (user_name: string, name: string): Row => ({
  sys_id: seededSysId(user_name),
  user_name,
  name,
  email: `${user_name}@acme.example`,
  active: 'true',
});

export const SEEDED_USERS: readonly Row[] = [
  user('admin', 'System Administrator'),
  user('ana', 'Ana Ortiz'),
  user('ben', 'Ben Okafor'),
  user('chloe', 'Chloe Martin'),
];

const incident = (
  number: string,
  priority: string,
  category: string,
  short_description: string,
  description: string,
): Row => ({
  number,
  priority,
  impact: priority === '1' ? '1' : priority === '5' ? '3' : '2',
  urgency: priority === '1' ? '1' : priority === '2' ? '1' : '3',
  category,
  short_description,
  description,
  caller_id: seededSysId('chloe'),
});

export const SEEDED_INCIDENTS: readonly Row[] = [
  incident(
    'INC0010001',
    '1',
    'database',
    'Checkout database refuses connections',
    'payments-db-1: too many clients since 09:12 UTC.',
  ),
  incident(
    'INC0010002',
    '2',
    'network',
    'VPN drops every few minutes',
    'All of the Lisbon office; started after the firewall change.',
  ),
  incident('INC0010003', '3', 'software', 'Invoice export is slow', 'Takes 20 minutes instead of 2 since Monday.'),
  incident('INC0010004', '4', 'hardware', 'Meeting room display stays dark', 'Room 4.12; cable was exchanged already.'),
  incident('INC0010005', '5', 'inquiry', 'How do I get a second monitor?', 'New joiner, asks for the order form.'),
  incident(
    'INC0010006',
    '2',
    'software',
    'Builds queue for an hour',
    'The shared runners have been saturated since the morning.',
  ),
];

/** The columns of a problem; there is one to find. */
export const PROBLEM_DEFAULTS: Row = {
  number: '',
  short_description: '',
  description: '',
  state: '101',
  priority: '4',
  assignment_group: '',
  assigned_to: '',
  correlation_id: '',
  active: 'true',
};

export const SEEDED_PROBLEMS: readonly Row[] = [
  { number: 'PRB0040001', short_description: 'Connection pool is too small', priority: '2' },
];

/** Every column an incident has; others are dropped without an error, as ServiceNow does, unless they are custom (`u_`). */
export const INCIDENT_DEFAULTS: Row = {
  number: '',
  short_description: '',
  description: '',
  state: '1',
  priority: '4',
  impact: '3',
  urgency: '3',
  category: 'inquiry',
  subcategory: '',
  assignment_group: '',
  assigned_to: '',
  caller_id: '',
  cmdb_ci: '',
  business_service: '',
  hold_reason: '',
  close_code: '',
  close_notes: '',
  severity: '3',
  contact_type: '',
  correlation_id: '',
  due_date: '',
  active: 'true',
};
