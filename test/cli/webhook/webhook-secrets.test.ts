import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { piped } from '../command-line.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'signing-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const check = (text: string) => {
  const file = join(folder, 'signing.json');
  writeFileSync(file, text);
  return piped(['webhook', 'secrets', file]);
};

it('counts usable signing secrets', async () => {
  const document = {
    github: ['a-secret-of-github', 'an-older-secret-of-github'],
    slack: '8f742231b10e8888abcd99yyyzzz85a5',
  };
  expect(await check(JSON.stringify(document))).toMatchObject({ exitCode: 0, stdout: 'usable: github 2, slack 1\n' });
});

it('names the position of an unusable secret without printing it', async () => {
  const document = { github: ['a-secret-of-github', 'canary'], servicenow: ['whsec_canary'] };
  const { exitCode, stdout, stderr } = await check(JSON.stringify(document));
  expect(exitCode).toBe(1);
  expect(stderr).toContain('github, secret 2: it has 6 bytes; at least 16 are needed');
  expect(stderr).toContain('servicenow, secret 1: the text after `whsec_` is not base64');
  expect(stdout + stderr).not.toContain('canary');
});

it.each(['canary-of-a-secret', '["canary"]', '{"github": 1}'])(
  '%s is not a document of secrets, and is not quoted',
  async (text) => {
    const { exitCode, stdout, stderr } = await check(text);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('must have the form');
    expect(stdout + stderr).not.toContain('canary');
  },
);
