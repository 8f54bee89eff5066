/** A bundle is two files, `X.json` and `X.dsse.json`. Accepts either name. */
export function bundleFiles(file: string): { document: string; envelope: string } {
  const name = file.replace(/(\.dsse)?\.json$/, '');
  return { document: `${name}.json`, envelope: `${name}.dsse.json` };
}

/** The values of a file of changes or of a bundle, beside it. */
export const valuesFile = (file: string): string => `${file.replace(/(\.dsse)?\.json$/, '')}.values.json`;

/** The folder of the policies and the workflow of a bundle, beside it. Each file has its hash as its name. */
export const textsFolder = (file: string): string => `${file.replace(/(\.dsse)?\.json$/, '')}.texts`;

export const addendumFiles = (file: string, seq: number) =>
  bundleFiles(`${file.replace(/(\.dsse)?\.json$/, '')}.addendum-${seq}.json`);
