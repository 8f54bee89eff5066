import { isIP } from 'node:net';
import { PlainUrl } from '../connectors/http/plain-url.ts';
import type { Connection } from '../pipeline/definitions.ts';

const INSTANCE = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const SLACK_TEAM = /^[TE][A-Z0-9]{2,}$/;
const HOST = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/;
const HOSTS_MAX = 100;

/** The address as it is stored: without a slash at its end. */
export const plainAddress = (baseUrl: string): string => baseUrl.trim().replace(/\/+$/, '');

/** What is wrong with a connection, and what was expected; undefined if nothing is. */
export function connectionProblem(name: string, connection: Connection, ownUrl: string): string | undefined {
  const { baseUrl, instance, allowedHosts } = connection;
  return (
    addressProblem(baseUrl, ownUrl) ??
    instanceProblem(name, instance) ??
    (allowedHosts === undefined ? undefined : hostsProblem(name, allowedHosts)) ??
    (connection.allowedTables === undefined || name === 'servicenow'
      ? undefined
      : 'allowedTables: only the connection servicenow has it')
  );
}

function addressProblem(baseUrl: string, ownUrl: string): string | undefined {
  const parsed = PlainUrl.safeParse(baseUrl);
  if (!parsed.success) return `baseUrl: ${parsed.error.issues[0]?.message ?? 'is not a URL'}`;
  const { protocol, hostname, search, origin } = new URL(baseUrl);
  if (search !== '') return 'baseUrl: remove "?" and the text after it';
  // Only on the local host is the address of the stage an IP address: its simulators are there.
  if (origin === new URL(ownUrl).origin && isIP(hostname) !== 0) return undefined;
  if (protocol !== 'https:') return 'baseUrl: must begin with https://, because the credential is sent there';
  const isName =
    isIP(hostname.replace(/^\[|\]$/g, '')) === 0 && hostname.includes('.') && !hostname.endsWith('.localhost');
  return isName ? undefined : `baseUrl: ${hostname} is not a public host name`;
}

function instanceProblem(name: string, instance: string): string | undefined {
  if (!INSTANCE.test(instance)) return 'instance: use letters, digits, dots, dashes and underscores';
  if (name === 'slack' && !SLACK_TEAM.test(instance)) {
    return `instance: ${instance} is not a team id (T0123ABCD); Slack shows it in the address of the workspace, app.slack.com/client/T…`;
  }
  return undefined;
}

function hostsProblem(name: string, hosts: readonly string[]): string | undefined {
  if (name !== 'http') return 'allowedHosts: only the connection http has it';
  if (hosts.length > HOSTS_MAX) return `allowedHosts: has ${hosts.length} hosts, at most ${HOSTS_MAX} are possible`;
  const wrong = hosts.find((host) => !HOST.test(host));
  return wrong === undefined
    ? undefined
    : `allowedHosts: "${wrong}" is not a host; write it in lower case and without https://, like api.example.com`;
}
