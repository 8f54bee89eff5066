import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { Call } from '../../bin/commands/command.ts';
import { askForTenant } from '../../bin/commands/setup/ask-for-tenant.ts';
import { InputLines } from '../../bin/terminal/input-lines.ts';
import { processTerminal } from '../../bin/terminal/terminal.ts';
import { temporaryFolder } from '../local/cloud/wire.ts';
import { type Answer, terminalStreams } from './person-at-terminal.ts';

describe('the lines that a person types', () => {
  it('are read one by one, also if several are pasted at once', async () => {
    const input = new PassThrough();
    const lines = new InputLines(input);
    input.write('one\ntwo\nthr');
    expect([await lines.next(), await lines.next()]).toEqual(['one', 'two']);
    input.end('ee');
    expect([await lines.next(), await lines.next(), await lines.next()]).toEqual(['three', undefined, undefined]);
  });
});

describe('tenant add, if its file exists already', () => {
  const STAGE = { stage: 'acme-staging', kind: 'staging' as const, url: 'https://own.example.com' };
  const asked = async (answers: readonly Answer[]) => {
    const folder = temporaryFolder();
    const file = join(folder.path, 'acme.tenant.yaml');
    writeFileSync(file, 'tenant: acme\n');
    const { streams, seen } = terminalStreams(answers);
    const call = new Call(processTerminal(streams), {}, { values: {}, args: [] });
    try {
      const result = await askForTenant(call, { ...STAGE, tenants: [{ tenant: 'acme', owners: [] }] }, file).then(
        (name) => name === file,
        (error: Error) => error.message,
      );
      return { result, content: existsSync(file) && readFileSync(file, 'utf8'), unexpected: seen.unexpected };
    } finally {
      folder.remove();
    }
  };

  it('asks whether to continue with it, and never overwrites it', async () => {
    const unchanged = { content: 'tenant: acme\n', unexpected: [] };
    const [tenant, use] = ['tenant (acme) [acme]', 'exists; continue with it'];
    expect(
      await asked([
        [tenant, ''],
        [use, ''],
      ]),
    ).toEqual({ result: true, ...unchanged });
    expect(
      await asked([
        [tenant, ''],
        [use, 'n'],
      ]),
    ).toEqual({ result: expect.stringContaining('nothing was changed'), ...unchanged });
  });
});
