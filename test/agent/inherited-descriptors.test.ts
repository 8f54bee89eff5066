import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { rootCertificates } from 'node:tls';
import { afterAll, expect, it } from 'vitest';
import { temporaryFolder } from '../local/cloud/wire.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

/** Starts when the thread that reads certificates has opened their file, and then opens files, as an agent opens its journal. */
const AGENT = `
import { closeSync, fstatSync, openSync, readdirSync, readlinkSync } from 'node:fs';
import tls from 'node:tls';
import { closeInheritedDescriptors, inheritable } from ${JSON.stringify(join(import.meta.dirname, '../../agent/sandbox/inherited-descriptors.ts'))};
const target = (descriptor) => { try { return readlinkSync('/proc/self/fd/' + descriptor); } catch { return ''; } };
const open = () => readdirSync('/proc/self/fd').map(target);
while (!open().includes(process.env.NODE_EXTRA_CA_CERTS)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
console.log('reads certificates');
closeInheritedDescriptors();
const own = Array.from({ length: 20 }, () => openSync(process.execPath, 'r'));
const certificates = tls.getCACertificates('extra').length;
for (const descriptor of own) { fstatSync(descriptor); closeSync(descriptor); }
console.log(JSON.stringify({ certificates, inheritable: inheritable() }));
`;

it('an agent that closes what it inherits leaves the file of certificates to the thread of Node.js that reads it', async () => {
  const certificates = join(folder.path, 'certificates.pem');
  const program = join(folder.path, 'agent.mjs');
  // Reading it takes until this test has written it.
  execFileSync('mkfifo', [certificates]);
  writeFileSync(program, AGENT);
  const child = spawn(process.execPath, [program], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_EXTRA_CA_CERTS: certificates },
  });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes) => output.push(String(bytes)));
  const ended = once(child, 'close');
  const reading = once(child.stdout as NodeJS.ReadableStream, 'data');
  const writer = spawn('sh', ['-c', 'exec cat > "$1"', 'sh', certificates], { stdio: ['pipe', 'ignore', 'ignore'] });
  await reading;
  // If the agent closes the file, it does so in this time.
  await pause(300);
  writer.stdin.end(rootCertificates[0]);
  await ended;
  expect(output.join('')).toBe('reads certificates\n{"certificates":1,"inheritable":[]}\n');
});
