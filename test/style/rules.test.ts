import { basename } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sourceFiles } from './source.ts';

const everything = sourceFiles('{bin,lib,lambdas,local,test,bench,agent,console}/**/*.{ts,mjs}', '*.ts');

/** Where the real world comes in; everywhere else it is handed in, so that a failure can be repeated. */
const ENTRANCE = /^lambdas\/entry\/|\.lambda\.ts$|-ports\.ts$|\.wiring\.ts$/;
const REAL_WORLD =
  /\bDate\.now\b|\bMath\.random\b|\bnew Date\(\)|\brandomUUID\b|\brandomBytes\b|\bset(Timeout|Interval)\b|\bprocess\.env\b/;

describe('the style of the code', () => {
  it('is checked on what there is', () => {
    expect(everything.length).toBeGreaterThan(150);
  });

  it('hands in time, chance, ids and environment everywhere but at the entrance', () => {
    const offences = sourceFiles('lambdas/**/*.ts')
      .filter(({ path, text }) => !ENTRANCE.test(path) && REAL_WORLD.test(text))
      .map(({ path, text }) => `${path}: ${REAL_WORLD.exec(text)?.[0]}`);
    expect(offences).toEqual([]);
  });

  it('has no drawer for whatever fits nowhere', () => {
    const DRAWER = /(^|[-.])(utils?|helpers?|commons?|managers?|services?|misc)(?=[-.])/;
    // The local host has the services of AWS, by the names that AWS gave them.
    const AWS_NAMES = ['hosted-services.ts', 'secrets-manager.ts', 'secrets-manager.test.ts'];
    const drawers = everything.map(({ path }) => path).filter((path) => DRAWER.test(basename(path)));
    expect(drawers.filter((path) => !AWS_NAMES.includes(basename(path)))).toEqual([]);
  });

  it('names test files for what they test, in lower case with dashes', () => {
    const odd = everything
      .map(({ path }) => path)
      .filter((path) => !/^[a-z0-9]+([-.][a-z0-9]+)*$/.test(basename(path)));
    expect(odd).toEqual([]);
  });

  it('leaves nothing for later: no skipped test, no test run alone, no note to self', () => {
    const LATER = new RegExp(
      ['\\b(it|test|describe)\\.(only|skip|todo)\\b', '\\bTO' + 'DO\\b', '\\bFIX' + 'ME\\b'].join('|'),
    );
    expect(everything.filter(({ text }) => LATER.test(text)).map(({ path }) => path)).toEqual([]);
  });

  it('sleeps in no test', () => {
    const SLEEP = /setTimeout\(\s*(resolve|done|r|_)\s*,|\bawait (delay|sleep)\(\s*\d/;
    const offences = sourceFiles('test/**/*.ts').filter(
      ({ path, text }) => SLEEP.test(text) && path !== 'test/style/rules.test.ts',
    );
    expect(offences.map(({ path }) => path)).toEqual([]);
  });
});
