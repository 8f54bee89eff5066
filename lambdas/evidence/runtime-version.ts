import packageFile from '../../package.json' with { type: 'json' };

/** Of this runtime and the connectors in it; fixed when a function is bundled. */
export const RUNTIME_VERSION: string = packageFile.version;
