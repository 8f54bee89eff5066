import { afterEach, describe, expect, it } from 'vitest';
import { onTerminal, type StubApi, stubApi } from './command-line.ts';

let api: StubApi | undefined;
afterEach(async () => {
  await api?.close();
  api = undefined;
});

const BEFORE = { caps: { maxConcurrency: 5 }, workspaces: {}, counterShards: 1, flags: [] };

async function set(...assignments: string[]) {
  api = await stubApi(() => ({ status: 200, body: { ...BEFORE, effectiveWithinSeconds: 60 } }));
  const { url, sent } = api;
  const result = await onTerminal(120, ['settings', 'set', ...assignments, '--url', url, '--key', 'k']);
  return { ...result, sent };
}

describe('settings set', () => {
  it.each([
    ['false', { 'worker_orchestration.enabled': false }],
    ['true', { 'worker_orchestration.enabled': true }],
  ])('switches agents with %s, and leaves the other settings as they are', async (value, features) => {
    const { exitCode, sent } = await set(`features.worker_orchestration.enabled=${value}`);
    expect({ exitCode, sent }).toMatchObject({ exitCode: 0, sent: [{ caps: { maxConcurrency: 5 }, features }] });
  });

  it('refuses other values of a flag, and sends nothing', async () => {
    const { exitCode, stderr, sent } = await set('features.worker_orchestration.enabled=off');
    expect({ exitCode, sent }).toEqual({ exitCode: 2, sent: [] });
    expect(stderr).toContain('must be true or false, not "off"');
  });
});
