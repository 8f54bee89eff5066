import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { BlockList, isIP, isIPv4 } from 'node:net';
import { TargetRefused } from '../target-errors.ts';

const RESOLVE_TIMEOUT_MS = 5_000;

export interface Address {
  address: string;
  family: 4 | 6;
}

/** All current addresses of a host name. */
export type Resolve = (hostname: string) => Promise<Address[]>;

export const systemResolve: Resolve = async (hostname) => {
  const found = await lookup(hostname, { all: true, verbatim: true });
  return found.map(({ address }) => addressOf(address));
};

/** IPv4 ranges that are not public hosts (IANA's special-purpose registry, plus multicast). */
const SPECIAL_IPV4: [network: string, prefix: number, what: string][] = [
  ['0.0.0.0', 8, 'this network, unspecified'],
  ['10.0.0.0', 8, 'private'],
  ['100.64.0.0', 10, 'carrier-grade NAT, and the metadata service of some clouds'],
  ['127.0.0.0', 8, 'loopback'],
  ['169.254.0.0', 16, 'link-local, and the metadata services of AWS'],
  ['172.16.0.0', 12, 'private'],
  ['192.0.0.0', 24, 'protocol assignments, and the metadata service of some clouds'],
  ['192.0.2.0', 24, 'documentation'],
  ['192.88.99.0', 24, '6to4 relays'],
  ['192.168.0.0', 16, 'private'],
  ['198.18.0.0', 15, 'benchmarks'],
  ['198.51.100.0', 24, 'documentation'],
  ['203.0.113.0', 24, 'documentation'],
  ['224.0.0.0', 4, 'multicast'],
  ['240.0.0.0', 4, 'reserved, broadcast'],
];

/**
 * Only global unicast addresses of IPv6 can be public. That excludes ::, ::1, IPv4-mapped and -compatible addresses,
 * NAT64, unique local (with AWS's fd00:ec2::254), link-local and multicast. These special ranges are inside it.
 */
const GLOBAL_UNICAST: [network: string, prefix: number] = ['2000::', 3];
const SPECIAL_IPV6: [network: string, prefix: number, what: string][] = [
  ['2001::', 23, 'protocol assignments, Teredo among them'],
  ['2001:db8::', 32, 'documentation'],
  ['2002::', 16, '6to4: contains an IPv4 address'],
  ['3fff::', 20, 'documentation'],
];

const special = new BlockList();
for (const [network, prefix] of SPECIAL_IPV4) special.addSubnet(network, prefix, 'ipv4');
for (const [network, prefix] of SPECIAL_IPV6) special.addSubnet(network, prefix, 'ipv6');
const globalUnicast = new BlockList();
globalUnicast.addSubnet(...GLOBAL_UNICAST, 'ipv6');

export function isPublic({ address, family }: Address): boolean {
  if (family === 4) return !special.check(address, 'ipv4');
  return globalUnicast.check(address, 'ipv6') && !special.check(address, 'ipv6');
}

/**
 * Resolves a host once and checks every address. The caller must connect to one of these addresses and not resolve the
 * name again, because the second result may differ.
 */
export async function publicAddresses(host: string, resolve: Resolve): Promise<Address[]> {
  const literal = host.replace(/^\[(.*)\]$/, '$1');
  const addresses = isIP(literal) ? [addressOf(literal)] : await resolved(host, resolve);
  // One private address is enough to refuse: the connection may use any of them.
  if (addresses.every(isPublic)) return addresses;
  throw new TargetRefused(`${host} resolves to an address that is not public; http tools call only public hosts`, {
    retryable: false,
  });
}

async function resolved(host: string, resolve: Resolve): Promise<Address[]> {
  const late = once(AbortSignal.timeout(RESOLVE_TIMEOUT_MS), 'abort').then(() => Promise.reject(new Error('timeout')));
  const addresses = await Promise.race([resolve(host), late]).catch((cause: unknown) => {
    throw new TargetRefused(`${host} could not be resolved`, { retryable: true, cause });
  });
  if (addresses.length > 0) return addresses;
  throw new TargetRefused(`${host} has no address`, { retryable: true });
}

export const addressOf = (address: string): Address => ({ address, family: isIPv4(address) ? 4 : 6 });
