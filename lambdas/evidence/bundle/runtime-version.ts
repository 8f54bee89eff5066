import packageFile from '../../../package.json' with { type: 'json' };

/** Put here when functions are bundled: a hash of all that they are made of. */
declare const COUNTERSIGN_BUILD: string | undefined;

const build = typeof COUNTERSIGN_BUILD === 'undefined' ? 'unbundled' : COUNTERSIGN_BUILD;

/** Of this runtime and the connectors in it: `0.1.0+3f2a…`, another for any other sources. */
export const RUNTIME_VERSION = `${packageFile.version}+${build}`;
