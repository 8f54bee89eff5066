import { createHash } from 'node:crypto';

/** The parts of package-lock.json that the list of components needs. */
export interface Lockfile {
  packages: Record<
    string,
    {
      version?: string;
      integrity?: string;
      license?: string;
      dependencies?: Record<string, string>;
    }
  >;
}

interface Program {
  name: string;
  version: string;
  bytes: Uint8Array;
  /** Paths of all files in the program, relative to the root: `node_modules/zod/index.js`. */
  files: readonly string[];
  lockfile: Lockfile;
}

const PACKAGE = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;
const UUID_PARTS = /^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/;

/**
 * The CycloneDX list of the packages that are in the program. It depends on the program only, so two builds have the same
 * list: no time, and the serial number is derived from the program.
 */
export function bomOf({ name, version, bytes, files, lockfile }: Program): object {
  const folders = files.flatMap((file) => PACKAGE.exec(file)?.[0].replace(/^.*?(?=node_modules\/)/, '') ?? []);
  const packages = [...new Set(folders)].sort();
  const refs = new Map(packages.map((folder) => [folder, purlOf(folder, lockfile)]));
  const program = `${name}@${version}`;
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${sha256.replace(UUID_PARTS, '$1-$2-8$3-8$4-$5')}`,
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': program,
        name,
        version,
        hashes: [{ alg: 'SHA-256', content: sha256 }],
      },
    },
    components: packages.map((folder) => componentOf(folder, refs.get(folder) ?? '', lockfile)),
    dependencies: [
      { ref: program, dependsOn: [...new Set(refs.values())].sort() },
      ...packages.map((folder) => ({
        ref: refs.get(folder),
        dependsOn: dependenciesOf(folder, lockfile).flatMap((each) => refs.get(each) ?? []),
      })),
    ],
  };
}

const nameOf = (folder: string): string => folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length);

function purlOf(folder: string, { packages }: Lockfile): string {
  const version = packages[folder]?.version;
  if (version === undefined) throw new Error(`${folder} is in the program but not in package-lock.json; run npm ci`);
  return `pkg:npm/${nameOf(folder).replace('@', '%40')}@${version}`;
}

function componentOf(folder: string, purl: string, { packages }: Lockfile): object {
  const { version, integrity = '', license } = packages[folder] ?? {};
  const [, group, name] = /^(?:(@[^/]+)\/)?(.*)$/.exec(nameOf(folder)) ?? [];
  const sha512 = /^sha512-(.*)$/.exec(integrity)?.[1];
  return {
    type: 'library',
    'bom-ref': purl,
    ...(group && { group }),
    name,
    version,
    purl,
    ...(sha512 && { hashes: [{ alg: 'SHA-512', content: Buffer.from(sha512, 'base64').toString('hex') }] }),
    ...(license && { licenses: [/ (OR|AND) /.test(license) ? { expression: license } : { license: { id: license } }] }),
  };
}

/** As Node.js resolves them: in the package's own folder first, then further up. */
function dependenciesOf(folder: string, { packages }: Lockfile): string[] {
  const names = Object.keys(packages[folder]?.dependencies ?? {}).sort();
  return names.flatMap((name) => {
    for (let from = folder; ; from = from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/')))) {
      const candidate = `${from === '' ? '' : `${from}/`}node_modules/${name}`;
      if (packages[candidate]) return [candidate];
      if (from === '') return [];
    }
  });
}
