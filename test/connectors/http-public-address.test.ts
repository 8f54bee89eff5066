import { describe, expect, it } from 'vitest';
import { type Address, addressOf, isPublic, publicAddresses } from '../../lambdas/connectors/http/public-address.ts';

const REFUSED = { code: 'TARGET_REFUSED', retryable: false };
const LATER = { code: 'TARGET_REFUSED', retryable: true };

/** The first and the last address of each range. */
const NOT_PUBLIC: [what: string, ...addresses: string[]][] = [
  ['unspecified', '0.0.0.0', '0.255.255.255', '::'],
  ['loopback', '127.0.0.1', '127.255.255.254', '::1'],
  ['private', '10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', '192.168.255.255'],
  ['link-local', '169.254.0.1', '169.254.255.255', 'fe80::1', 'febf::1'],
  ['metadata', '169.254.169.254', '169.254.170.2', 'fd00:ec2::254', '100.100.100.200', '192.0.0.192'],
  ['shared by carriers', '100.64.0.1', '100.127.255.255'],
  ['documentation', '192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1', '3fff:fff:ffff::1'],
  ['benchmarks', '198.18.0.1', '198.19.255.255'],
  ['multicast', '224.0.0.1', '239.255.255.255', 'ff02::1'],
  ['reserved and broadcast', '240.0.0.1', '255.255.255.255'],
  ['IPv4 in IPv6, mapped', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:8.8.8.8', '::ffff:a9fe:a9fe'],
  ['IPv4 in IPv6, compatible', '::127.0.0.1', '::8.8.8.8'],
  ['IPv4 in IPv6, translated', '64:ff9b::127.0.0.1', '64:ff9b::8.8.8.8', '64:ff9b:1::1'],
  ['IPv4 in IPv6, 6to4 and Teredo', '2002:7f00:1::', '2002:808:808::1', '2001::1', '2001:0:4136:e378::1'],
  ['unique local', 'fc00::1', 'fd12:3456:789a::1'],
  ['site-local and discard', 'fec0::1', '100::1'],
];
const PUBLIC = [
  ...[
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
  ],
  ...[
    '169.253.255.255',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.0',
    '192.167.255.255',
    '198.17.255.255',
    '223.255.255.255',
  ],
  ...['2606:4700::1111', '2a00:1450:4001:800::200e', '2001:4860:4860::8888', '3ffe::1'],
];

describe('an address', () => {
  it.each(NOT_PUBLIC)('that is %s is not public', (_what, ...addresses) => {
    expect(addresses.filter((address) => isPublic(addressOf(address)))).toEqual([]);
  });

  it('outside the special ranges is public, up to their borders', () => {
    expect(PUBLIC.filter((address) => !isPublic(addressOf(address)))).toEqual([]);
  });
});

describe('the addresses behind a host', () => {
  const named = (...addresses: string[]) => publicAddresses('api.example.com', async () => addresses.map(addressOf));

  it('are all returned if all are public', async () => {
    expect(await named('1.1.1.1', '2606:4700::1111')).toEqual([
      { address: '1.1.1.1', family: 4 },
      { address: '2606:4700::1111', family: 6 },
    ]);
  });

  it('are refused if one of them is not public', async () => {
    await expect(named('1.1.1.1', '10.0.0.1')).rejects.toMatchObject(REFUSED);
    await expect(named('1.1.1.1', '::1')).rejects.toMatchObject(REFUSED);
  });

  it('may be retried if there are none', async () => {
    await expect(named()).rejects.toMatchObject(LATER);
    const notFound = async (): Promise<Address[]> => {
      throw new Error('ENOTFOUND');
    };
    await expect(publicAddresses('api.example.com', notFound)).rejects.toMatchObject(LATER);
  });

  it('are resolved once: later changes of the name have no effect', async () => {
    const answers = [['1.1.1.1'], ['127.0.0.1']];
    const rebinding = async () => (answers.shift() ?? []).map(addressOf);
    expect(await publicAddresses('api.example.com', rebinding)).toEqual([{ address: '1.1.1.1', family: 4 }]);
    expect(answers).toHaveLength(1);
  });

  it('are the host itself if it is an IP address, without a lookup', async () => {
    const nobody = async (): Promise<Address[]> => {
      throw new Error('the name was resolved');
    };
    expect(await publicAddresses('[2606:4700::1111]', nobody)).toEqual([{ address: '2606:4700::1111', family: 6 }]);
    await expect(publicAddresses('169.254.169.254', nobody)).rejects.toMatchObject(REFUSED);
    await expect(publicAddresses('[::1]', nobody)).rejects.toMatchObject(REFUSED);
  });
});
