import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LONG_FILES } from '../long-files.ts';
import { sourceFiles } from './source.ts';

const everything = sourceFiles('{bin,client,lib,lambdas,local,test,bench,agent,console}/**/*.{ts,tsx,mjs}', '*.ts');

/** Entry points use the real clock, ids and environment. Everywhere else they are injected, so that a failure can be repeated. */
const ENTRY_POINT = /^lambdas\/entry\/|\.lambda\.ts$|\.wiring\.ts$/;
const NOT_REPEATABLE =
  /\bDate\.now\b|\bMath\.random\b|\bnew Date\(\)|\brandomUUID\b|\brandomBytes\b|\bset(Timeout|Interval)\b|\bprocess\.env\b/;

describe('the code', () => {
  it('is found by this test', () => {
    expect(everything.length).toBeGreaterThan(150);
  });

  it('injects time, randomness, ids and environment, except in entry points', () => {
    const violations = sourceFiles('lambdas/**/*.ts')
      .filter(({ path, text }) => !ENTRY_POINT.test(path) && NOT_REPEATABLE.test(text))
      .map(({ path, text }) => `${path}: ${NOT_REPEATABLE.exec(text)?.[0]}`);
    expect(violations).toEqual([]);
  });

  it('has no file named utils, helpers, common, manager or service', () => {
    const VAGUE_NAME = /(^|[-.])(utils?|helpers?|commons?|managers?|services?|misc)(?=[-.])/;
    // Names of AWS services.
    const AWS_NAMES = ['hosted-services.ts', 'secrets-manager.ts', 'secrets-manager.test.ts'];
    const vague = everything.map(({ path }) => path).filter((path) => VAGUE_NAME.test(basename(path)));
    expect(vague.filter((path) => !AWS_NAMES.includes(basename(path)))).toEqual([]);
  });

  it('names files in lower case with dashes', () => {
    const odd = everything
      .map(({ path }) => path)
      .filter((path) => !/^[a-z0-9]+([-.][a-z0-9]+)*$/.test(basename(path)));
    expect(odd).toEqual([]);
  });

  it('has no skipped test, no test run alone and no note to finish later', () => {
    const LATER = new RegExp(
      ['\\b(it|test|describe)\\.(only|skip|todo)\\b', '\\bTO' + 'DO\\b', '\\bFIX' + 'ME\\b'].join('|'),
    );
    expect(everything.filter(({ text }) => LATER.test(text)).map(({ path }) => path)).toEqual([]);
  });

  it('has no test that sleeps', () => {
    const SLEEP = /setTimeout\(\s*(resolve|done|r|_)\s*,|\bawait (delay|sleep)\(\s*\d/;
    const violations = sourceFiles('test/**/*.ts').filter(
      ({ path, text }) => SLEEP.test(text) && path !== 'test/style/rules.test.ts',
    );
    expect(violations.map(({ path }) => path)).toEqual([]);
  });

  it('starts long test files first, and names only files that exist', () => {
    const paths = everything.map(({ path }) => path);
    expect(LONG_FILES.filter((path) => !paths.includes(path))).toEqual([]);
  });
});
