import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { RULES } from '../../../lambdas/evidence/verify/rules/check-rules.ts';
import { trustedKeys } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { brokenRules } from './second-rules.ts';
import { isGenuine } from './second-verifier.ts';

interface RuleFile {
  rule: number;
  name: string;
  publicKey: string;
  vectors: { what: string; breaks: number[]; document: string; envelope: string }[];
}

const FOLDER = join(import.meta.dirname, '..', 'vectors', 'rules');
const files = globSync('format-*/rule-*.json', { cwd: FOLDER })
  .sort()
  .map((file): RuleFile => JSON.parse(readFileSync(join(FOLDER, file), 'utf8')));
const vectors = files.flatMap(({ rule, publicKey, vectors: own }) => own.map((each) => ({ rule, publicKey, ...each })));

describe('the test vectors of the rules', () => {
  it.each(vectors)('rule $rule, for both verifiers: $what breaks $breaks', (vector) => {
    const { document, envelope, breaks, publicKey } = vector;
    const keys = trustedKeys(publicKey);
    const verdict = verifyBundle({ document: Buffer.from(document), envelope: Buffer.from(envelope), keys });
    expect(verdict).toMatchObject({ intact: true, verdict: breaks.length === 0 ? 'valid' : 'rules_broken' });
    const broken = 'rules' in verdict ? verdict.rules.broken : [];
    expect([...new Set(broken.map(({ rule }) => rule))], JSON.stringify(broken)).toEqual(breaks);
    expect(isGenuine(document, envelope, publicKey)).toBe(true);
    expect(brokenRules(JSON.parse(document))).toEqual(breaks);
  });

  it('have one that breaks each rule, and one that nearly does', () => {
    for (const { number, name } of RULES) {
      const own = vectors.filter(({ rule }) => rule === number);
      const kinds = [own.some(({ breaks }) => breaks.includes(number)), own.some(({ breaks }) => breaks.length === 0)];
      expect(kinds, `rule ${number}, ${name}`).toEqual([true, true]);
      expect(files.filter(({ rule }) => rule === number).every((file) => file.name === name)).toBe(true);
    }
  });
});
