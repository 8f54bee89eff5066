import type { Command, Option } from '../command.ts';

const KEY_OPTION: Option = {
  value: 'PEM|JSON',
  description: 'file with the trusted public keys: PEM, or countersign-keys.json of the stage',
};

const FILE_DETAILS = [
  'FILE is bundle.json. Its signed envelope, bundle.dsse.json, must be in the same folder, and so must its addenda',
  '(bundle.addendum-8.json, or addendum-00000008.json as in the bucket): what was recorded after the end of the run.',
  'Works offline.',
].join('\n');

/** What checks evidence is large, so each command loads it when it runs. */
export const evidenceChecks: readonly Command[] = [
  {
    name: 'evidence verify',
    args: ['FILE'],
    description: 'check a bundle or a file of changes offline',
    details: [
      FILE_DETAILS,
      'Beside a file of changes, FILE.values.json of changes export is compared with the signed digests.',
      '--with-texts DIR makes the last decision on each step again, with the policies that evidence get --texts wrote to DIR',
      'and the requests in FILE.values.json (evidence get --values). The exit code is 1 if a decision differs,',
      '2 if one cannot be made.',
      'Two results: whether the bundle is intact, and whether the run followed the rules (docs/evidence-format.md).',
      'Exit codes: 0 intact, and the rules were followed; 1 tampered with (the first bad entry is named); 2 cannot be',
      'verified, because a file is missing or unreadable, or because no key was given; 3 intact, but the run broke a',
      'rule (each one is named); 70 a bug in this program.',
    ].join('\n'),
    offline: true,
    options: {
      key: KEY_OPTION,
      'with-texts': { value: 'DIR', description: 'make decisions again with the policies in this folder' },
    },
    run: async (call) => (await import('./verify.ts')).verifyEvidence(call),
  },
  {
    name: 'evidence show',
    args: ['FILE'],
    description: 'show a bundle: decisions, approvals, writes and rollback',
    details: `${FILE_DETAILS}\nA bundle that was tampered with is not shown; evidence verify names the problem.`,
    offline: true,
    options: { key: KEY_OPTION },
    run: async (call) => (await import('./show.ts')).showEvidence(call),
  },
  {
    name: 'evidence html',
    args: ['FILE'],
    description: 'convert a bundle to an HTML page',
    details: `${FILE_DETAILS}\nThe page is self-contained: no scripts, fonts or images.`,
    offline: true,
    options: { key: KEY_OPTION, out: { value: 'FILE', description: 'file to write (default: standard output)' } },
    run: async (call) => (await import('./html.ts')).evidenceHtml(call),
  },
  {
    name: 'evidence open',
    args: ['FILE'],
    description: 'show the values behind the digests of a bundle, and check them',
    details: [
      FILE_DETAILS,
      'The values are in FILE.values.json, as evidence get --values writes it, or in the file of --values.',
      'Exit codes: 0 each value has its digest; 1 a value differs, or the bundle was tampered with; 2 cannot be read.',
    ].join('\n'),
    offline: true,
    options: { key: KEY_OPTION, values: { value: 'FILE', description: 'file with the values' } },
    run: async (call) => (await import('./open.ts')).openEvidence(call),
  },
  {
    name: 'evidence audit',
    args: ['FOLDER'],
    description: 'compare a copy of the evidence bucket with its daily logs',
    details: [
      'FOLDER is the result of `aws s3 sync s3://<bucket> FOLDER`: bundles in evidence/, logs in log/.',
      'The audit finds deleted, modified and added bundles, and runs that were accepted but never sealed. It works offline.',
      'Name every expected tenant with --tenant: a tenant whose files were all deleted leaves no trace.',
      'Exit codes: 0 everything is as it was sealed; 1 there are problems; 2 a file cannot be read.',
    ].join('\n'),
    offline: true,
    options: {
      key: KEY_OPTION,
      tenant: { value: 'TENANT', repeatable: true, description: 'a tenant that must exist' },
      from: { value: 'DAY', description: 'first day to check (default: the first log of the tenant)' },
      through: { value: 'DAY', description: 'last day whose log must exist (default: yesterday, UTC)' },
    },
    run: async (call) => (await import('./audit.ts')).auditFolder(call),
  },
];
