import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { CloudFormationTemplate } from '../../local/template/template.ts';
import { type Ended, REPOSITORY, runCommand } from '../local/harness/commands.ts';
import { STAGES, type Stage, synthesized } from './synthesized.ts';

const CDK = join(dirname(createRequire(import.meta.url).resolve('aws-cdk/package.json')), 'bin', 'cdk');
const APPS = join(import.meta.dirname, 'apps-elsewhere.ts');
/** The checks are WebAssembly: optimizing it, and collecting garbage in threads, takes longer than it saves. */
const NODE = 'node --liftoff-only --single-threaded-gc --min-semi-space-size=16 --max-semi-space-size=32';
const SOURCES = ['bin', 'client', 'console', 'docs', 'lambdas', 'lib', 'policies'];
const FILES = ['cdk.json', 'package.json', 'package-lock.json', 'tsconfig.json'];
const REASON_MIN_CHARACTERS = 20;
let folder: string;
let ended: Record<Stage, Ended>;

const cdkSynth = (stage: string, ...options: string[]): Promise<Ended> =>
  runCommand(CDK, 'synth', '--quiet', '-c', `stage=${stage}`, ...options);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'countersign-synth-'));
  const clone = join(folder, 'a clone');
  for (const name of [...SOURCES, ...FILES]) cpSync(join(REPOSITORY, name), join(clone, name), { recursive: true });
  symlinkSync(join(REPOSITORY, 'node_modules'), join(clone, 'node_modules'));
  const app = `${NODE} '${APPS}' '${folder}'`;
  ended = {
    local: await cdkSynth('local', '--app', app, '--output', join(folder, 'local')),
    'acme-prod': await cdkSynth('acme-prod', '--app', join(folder, 'acme-prod')),
  };
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const left = (name: string, file: string) => JSON.parse(readFileSync(join(folder, name, file), 'utf8'));

/** The command line adds where each resource comes from in the code; that deploys nothing. */
function withoutMetadata({ Resources = {}, ...rest }: CloudFormationTemplate): CloudFormationTemplate {
  const plain = Object.entries(Resources).map(([logicalId, { Metadata: _paths, ...resource }]) => [
    logicalId,
    resource,
  ]);
  return { ...rest, Resources: Object.fromEntries(plain) };
}

describe.each(STAGES)('cdk synth of stage %s', (stage) => {
  it('passes all checks of AwsSolutions', () => {
    expect(ended[stage]).toEqual({ code: 0, output: '' });
    expect(left(stage, 'validation-report.json').pluginReports).toEqual([]);
  });

  it('produces the template that the local host runs', () => {
    const byCommandLine = left(stage, 'Countersign.template.json');
    expect(withoutMetadata(byCommandLine)).toEqual(withoutMetadata(synthesized(stage).template));
  });

  it('gives a reason for each acknowledged finding', () => {
    const metadata: Record<string, { type: string; data: Record<string, string> }[]> = left(
      stage,
      'Countersign.metadata.json',
    );
    const acknowledged = Object.values(metadata)
      .flat()
      .filter(({ type }) => type === 'aws:cdk:acknowledged-rules')
      .flatMap(({ data }) => Object.entries(data));
    expect(acknowledged.length).toBeGreaterThan(0);
    for (const [rule, reason] of acknowledged) {
      expect(rule).toMatch(/AwsSolutions-[A-Z]+\d+/);
      expect(reason.length, rule).toBeGreaterThanOrEqual(REASON_MIN_CHARACTERS);
    }
  });
});

describe('a second synth of the largest stage, in another clone, from another folder and in another year', () => {
  it.each([
    ['largest', 'Countersign.template.json'],
    ['firewall', 'Firewall.template.json'],
  ] as const)('gives the same bytes, with the same code: %s', (name, file) => {
    const [first, second] = [inject('assemblies')[name], join(folder, name)].map((each) =>
      readFileSync(join(each, file), 'utf8'),
    );
    expect(firstDifference(second ?? '', first ?? '')).toBe('');
  });

  it.each(['largest', 'firewall'])(
    'passes all checks of AwsSolutions, with domain name, firewall and VPC: %s',
    (name) => {
      expect(left(name, 'validation-report.json').pluginReports).toEqual([]);
    },
  );
});

/** The first line that differs: the whole texts have some hundred kilobytes. */
function firstDifference(one: string, other: string): string {
  const others = other.split('\n');
  return one.split('\n').find((line, at) => line !== others[at]) ?? (one === other ? '' : 'the end');
}

it('an unknown stage ends cdk synth with one clear sentence', async () => {
  const { code, output } = await cdkSynth('acme-nowhere', '--output', join(folder, 'nowhere'));
  expect(code).toBe(1);
  expect(output).toContain('there is no stage "acme-nowhere"; add it to context.stages in cdk.json');
  expect(output).not.toMatch(/^ +at /m);
});
