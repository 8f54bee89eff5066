import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '..', '..');
const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8');

interface Step {
  uses?: string;
  run?: string;
  with?: Record<string, unknown>;
}
interface Job {
  needs?: string;
  environment?: string;
  permissions?: Record<string, string>;
  steps: Step[];
}

const source = textOf('docs/github-actions/deploy-stage.yaml');
const workflow = parse(source) as { permissions: Record<string, string>; jobs: Record<string, Job> };
const job = (name: string) => workflow.jobs[name] ?? expect.fail(`there is no job ${name}`);
const commandsOf = ({ steps }: Job) => steps.flatMap(({ run }) => run ?? []);

describe('the sample workflow that deploys a stage', () => {
  it('runs only commands that exist', () => {
    const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> };
    const commands = Object.values(workflow.jobs).flatMap(commandsOf);
    const used = commands.map((command) => /^npm (?:run )?(\S+)/.exec(command)?.[1] ?? command);
    expect(used.filter((name) => name !== 'ci' && !(name in scripts))).toEqual([]);
    expect(used).toEqual(expect.arrayContaining(['ci', 'test', 'diff', 'deploy']));
    expect([scripts.diff, scripts.deploy]).toEqual(['cdk diff', 'cdk deploy']);
  });

  it('tests first, shows the difference, and deploys after the reviewers of an environment', () => {
    expect(commandsOf(job('test'))).toEqual(['npm ci', 'npm test']);
    expect([job('diff').needs, job('deploy').needs]).toEqual(['test', 'diff']);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: an expression of GitHub
    expect(job('deploy').environment).toBe('${{ inputs.stage }}');
    expect(job('diff').environment).not.toBe(job('deploy').environment);
  });

  it('pins actions by commit, and gives a token only to jobs that need it', () => {
    const actions = Object.values(workflow.jobs).flatMap(({ steps }) => steps.flatMap(({ uses }) => uses ?? []));
    for (const action of actions) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/);
    expect(workflow.permissions).toEqual({ contents: 'read' });
    expect(job('test').permissions).toBeUndefined();
    for (const name of ['diff', 'deploy']) expect(job(name).permissions).toMatchObject({ 'id-token': 'write' });
    expect(source).not.toMatch(/secrets\.|aws-access-key-id/);
  });

  it('puts no input into a command, where it could be a command itself', () => {
    for (const command of Object.values(workflow.jobs).flatMap(commandsOf)) expect(command).not.toContain('${{');
  });
});

describe('the role of the workflow', () => {
  const { trustPolicy, permissions } = JSON.parse(textOf('docs/github-actions/deploy-role.json'));

  it('is for one environment of one repository', () => {
    const [{ Condition, Action }] = trustPolicy.Statement;
    expect(Action).toBe('sts:AssumeRoleWithWebIdentity');
    expect(Condition).toEqual({
      StringEquals: {
        'token.actions.githubusercontent.com:aud': 'sts.amazonaws.com',
        'token.actions.githubusercontent.com:sub':
          'repo:OWNER@OWNER_ID/REPOSITORY@REPOSITORY_ID:environment:acme-staging',
      },
    });
  });

  it('may only assume roles of the CDK', () => {
    expect(permissions.Statement).toHaveLength(1);
    expect(permissions.Statement[0].Action).toBe('sts:AssumeRole');
    for (const role of permissions.Statement[0].Resource) expect(role).toMatch(/:role\/cdk-[a-z0-9]+-[a-z-]+-role-/);
  });
});
