import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { HostClock } from '../../../local/host/clock.ts';
import { temporaryFolder } from '../cloud/wire.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

it('has the same time after a restart, also if the new offset has fewer digits than the last one, in a file of its owner', () => {
  const clock = new HostClock(folder.path);
  expect(clock.sharedOffset[0]).toBe(0);
  for (const [byMs, offsetMs] of [
    [60_000.125, 60_000.125],
    [0.875, 60_001],
    [9_939_999, 10_000_000],
  ] as const) {
    clock.advance(byMs);
    expect(new HostClock(folder.path).sharedOffset[0]).toBe(offsetMs);
  }
  expect(statSync(join(folder.path, 'clock.json')).mode & 0o777).toBe(0o600);
});
