import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CloudFormationTemplate } from '../../local/template/template.ts';
import { type Ended, runCommand } from '../local/harness/commands.ts';
import { STAGES, synthesized } from './synthesized.ts';

const CDK = join(dirname(createRequire(import.meta.url).resolve('aws-cdk/package.json')), 'bin', 'cdk');
const REASON_MIN_CHARACTERS = 20;
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'countersign-synth-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const synth = (stage: string): Promise<Ended> =>
  runCommand(CDK, 'synth', '--quiet', '-c', `stage=${stage}`, '--output', join(folder, stage));

const left = (stage: string, file: string) => JSON.parse(readFileSync(join(folder, stage, file), 'utf8'));

/** The command line adds where each resource comes from in the code; that deploys nothing. */
function withoutMetadata({ Resources = {}, ...rest }: CloudFormationTemplate): CloudFormationTemplate {
  const plain = Object.entries(Resources).map(([logicalId, { Metadata: _paths, ...resource }]) => [
    logicalId,
    resource,
  ]);
  return { ...rest, Resources: Object.fromEntries(plain) };
}

describe.each(STAGES)('cdk synth of stage %s', (stage) => {
  let ended: Ended;
  beforeAll(async () => {
    ended = await synth(stage);
  });

  it('passes all checks of AwsSolutions', () => {
    expect(ended).toEqual({ code: 0, output: '' });
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

it('an unknown stage ends cdk synth with one clear sentence', async () => {
  const { code, output } = await synth('acme-nowhere');
  expect(code).toBe(1);
  expect(output).toContain('there is no stage "acme-nowhere"; add it to context.stages in cdk.json');
  expect(output).not.toMatch(/^ +at /m);
});
