import { describe, expect, it } from 'vitest';
import { destinationOf } from '../../lambdas/connectors/http/destination.ts';
import { PlainUrl } from '../../lambdas/connectors/http/plain-url.ts';
import { addressOf } from '../../lambdas/connectors/http/public-address.ts';

const REFUSED = { code: 'TARGET_REFUSED', retryable: false };

describe('a URL', () => {
  it.each([
    'https://api.example.com',
    'https://api.example.com/v1/things?q=a%20b',
    'https://api.example.com:8443/x',
    'https://api.example.com:443/x',
    'https://xn--mnchen-3ya.example/x',
    'http://127.0.0.1:4500/_sim/github',
    'https://[2606:4700::1111]/x',
  ])('in canonical form is accepted: %s', (url) => {
    expect(PlainUrl.safeParse(url).success).toBe(true);
  });

  it.each([
    ['decimal', 'http://2130706433/'],
    ['octal', 'http://0177.0.0.1/'],
    ['hexadecimal', 'http://0x7f000001/'],
    ['hexadecimal in parts', 'http://0x7f.0.0.0x1/'],
    ['shortened', 'http://127.1/'],
    ['a leading zero', 'http://127.0.0.01/'],
    ['decimal of a public address', 'https://134744072/'],
    ['wide digits', 'http://１２７.0.0.1/'],
    ['circled letters', 'https://ⓔxample.com/'],
    ['escapes', 'http://%31%32%37.0.0.1/'],
    ['mapped, mixed notation', 'http://[::ffff:127.0.0.1]/'],
    ['IPv6 at length', 'http://[0:0:0:0:0:0:0:1]/'],
    ['IPv6 with a zone', 'http://[fe80::1%25eth0]/'],
    ['a user', 'https://api.example.com@169.254.169.254/'],
    ['a user and password', 'https://user:password@api.example.com/'],
    ['an empty user', 'https://@api.example.com/'],
    ['a backslash', 'https://api.example.com\\@169.254.169.254/'],
    ['a backslash in the path', 'https://api.example.com/a\\b'],
    ['a tab in the host', 'https://api.exam\tple.com/'],
    ['a line break', 'https://api.example.com/\r\nhost: x'],
    ['a space before', ' https://api.example.com/'],
    ['capitals', 'https://API.example.com/'],
    ['letters of other alphabets', 'https://api.exаmple.com/'],
    ['no slashes', 'https:api.example.com/'],
    ['one slash', 'https:/api.example.com/'],
    ['three slashes', 'https:///api.example.com/'],
    ['no scheme', '//api.example.com/'],
    ['another scheme', 'ftp://api.example.com/'],
    ['a file', 'file:///etc/passwd'],
    ['data', 'data:text/plain,x'],
    ['an empty port', 'https://api.example.com:/'],
    ['a padded port', 'https://api.example.com:0443/'],
    ['a port beyond the last', 'https://api.example.com:65536/'],
    ['no host', 'https://'],
    ['a fragment', 'https://api.example.com/x#part'],
    ['one up', 'https://api.example.com/a/../b'],
    ['here', 'https://api.example.com/a/./b'],
    ['one up at the end', 'https://api.example.com/a/..'],
    ['one up before a query', 'https://api.example.com/a/..?q=1'],
    ['one up, encoded', 'https://api.example.com/a/%2e%2E/b'],
    ['one up, half encoded', 'https://api.example.com/a/.%2e/b'],
    ['one up, encoded twice', 'https://api.example.com/a/%252e%252e/b'],
    ['one up, encoded three times', 'https://api.example.com/a/%25252e%25252e/b'],
    ['one up behind an encoded slash', 'https://api.example.com/a%2f..%2fb'],
    ['one up behind an encoded backslash', 'https://api.example.com/a%5c..%5cb'],
    ['one up with a parameter', 'https://api.example.com/a/..;x=1/b'],
    ['one up with a byte that ends it', 'https://api.example.com/a/..%00/b'],
    ['one up with a tab inside', 'https://api.example.com/a/.%09./b'],
    ['one up in wide letters', 'https://api.example.com/a/%EF%BC%8E%EF%BC%8E/b'],
    ['one up as a leader of two dots', 'https://api.example.com/a/%E2%80%A5/b'],
    ['one up in too many bytes', 'https://api.example.com/a/%c0%ae%c0%ae/b'],
    ['too much', `https://api.example.com/${'x'.repeat(2_000)}`],
  ])('in another form is refused: %s', (_what, url) => {
    expect(PlainUrl.safeParse(url).success).toBe(false);
  });
});

it('a URL is returned as it will be requested', () => {
  expect(PlainUrl.parse('https://api.example.com')).toBe('https://api.example.com/');
  expect(PlainUrl.parse('https://api.example.com:443/x')).toBe('https://api.example.com/x');
  expect(PlainUrl.parse("https://api.example.com/a..b/...x/.well-known?q='..'")).toBe(
    'https://api.example.com/a..b/...x/.well-known?q=%27..%27',
  );
});

describe('a request', () => {
  const OWN = 'http://127.0.0.1:4500';
  const allowedHosts = ['api.example.com', 'api.example.com:8443', '127.0.0.1:4500', '127.0.0.1:22', '10.0.0.1'];
  allowedHosts.push('169.254.169.254', '[::1]', '[::ffff:7f00:1]', 'localhost', 'localhost:4500', '127.0.0.1');
  const go = (url: string, { ownUrl, addresses = ['1.1.1.1'] }: { ownUrl?: string; addresses?: string[] } = {}) => {
    const access = { baseUrl: 'https://example.com', instance: 'acme', credential: undefined, allowedHosts, ownUrl };
    return destinationOf(url, access, async () => addresses.map(addressOf));
  };

  it('goes to an allowed host, at the checked addresses', async () => {
    const destination = await go('https://api.example.com/v1', { addresses: ['1.1.1.1', '2606:4700::1111'] });
    expect(destination).toMatchObject({ host: 'api.example.com', addresses: [{ address: '1.1.1.1' }, { family: 6 }] });
    expect(await go('https://api.example.com:8443/v1')).toMatchObject({ host: 'api.example.com:8443' });
  });

  it.each([
    ['another host', 'https://example.org/'],
    ['a host that ends like an allowed one', 'https://evil-api.example.com/'],
    ['a host that begins like an allowed one', 'https://api.example.com.evil.net/'],
    ['a host below an allowed one', 'https://a.api.example.com/'],
    ['an allowed host with a dot behind', 'https://api.example.com./'],
    ['another port of an allowed host', 'https://api.example.com:22/'],
    ['an allowed host without TLS', 'http://api.example.com/'],
    ['an allowed number that is private', 'https://10.0.0.1/'],
    ['allowed metadata', 'http://169.254.169.254/latest/meta-data/'],
    ['allowed metadata over TLS', 'https://169.254.169.254/latest/meta-data/'],
    ['loopback over TLS', 'https://[::1]/'],
    ['loopback mapped into IPv6', 'https://[::ffff:7f00:1]/'],
  ])('to %s is refused and not retried', async (_what, url) => {
    await expect(go(url)).rejects.toMatchObject(REFUSED);
  });

  it('to an allowed name with a private address is refused and not retried', async () => {
    const inside = { addresses: ['127.0.0.1'] };
    await expect(go('https://localhost/', inside)).rejects.toMatchObject(REFUSED);
    await expect(go('https://api.example.com/', inside)).rejects.toMatchObject(REFUSED);
  });

  it('is refused without an allow list', async () => {
    const access = { baseUrl: 'https://example.com', instance: 'acme', credential: undefined };
    const going = destinationOf('https://api.example.com/', access, async () => [addressOf('1.1.1.1')]);
    await expect(going).rejects.toMatchObject({ ...REFUSED, message: expect.stringContaining('allowedHosts') });
  });

  describe('to loopback', () => {
    it('is sent to the port of the local host itself, if that is allowed', async () => {
      expect(await go(`${OWN}/x`, { ownUrl: OWN })).toMatchObject({ addresses: [{ address: '127.0.0.1', family: 4 }] });
    });

    it.each([
      ['another port', 'http://127.0.0.1:22/'],
      ['no port', 'http://127.0.0.1/'],
      ['the port by name', 'http://localhost:4500/'],
      ['the port over TLS', 'https://127.0.0.1:4500/'],
      ['a port that is not allowed', 'http://127.0.0.1:4501/'],
    ])('is refused for any other port: %s', async (_what, url) => {
      const addresses = ['127.0.0.1'];
      await expect(go(url, { ownUrl: OWN, addresses })).rejects.toMatchObject(REFUSED);
    });

    it('is refused on a deployed stage, even if the allow list has it', async () => {
      const deployed = 'https://a1b2c3.execute-api.eu-west-1.amazonaws.com';
      await expect(go(`${OWN}/x`, { ownUrl: deployed })).rejects.toMatchObject(REFUSED);
      await expect(go(`${OWN}/x`)).rejects.toMatchObject(REFUSED);
      // Nor with a host name as the URL of the stage that resolves to a private address.
      const misled = { ownUrl: 'https://api.example.com', addresses: ['127.0.0.1'] };
      await expect(go('https://api.example.com/x', misled)).rejects.toMatchObject(REFUSED);
    });
  });
});
