export interface HeldFile {
  /** For people. */
  name: string;
  document: Uint8Array;
  envelope: Uint8Array | undefined;
}

/** What is verified: a bundle with its signature and addenda, and the keys to check signatures with. */
export interface HeldFiles {
  name: string;
  document: Uint8Array;
  envelope: Uint8Array;
  addenda: readonly HeldFile[];
  /** The text of a PEM file or of a published list of keys. */
  keys: string | undefined;
}

interface ReadFile {
  name: string;
  bytes: Uint8Array;
}

const ENVELOPE = /\.dsse\.json$/;
const ADDENDUM = /(^|\.)addendum-\d+\.json$/;
const KEYS = /\.pem$|keys.*\.json$/;

/** Sorts files that somebody dropped, by their names. Throws a sentence if some are missing. */
export function heldFilesIn(files: readonly ReadFile[], publishedKeys: string | undefined): HeldFiles {
  const keyFile = files.find(({ name }) => KEYS.test(name));
  const documents = files.filter((each) => each !== keyFile && !ENVELOPE.test(each.name));
  const envelopeOf = ({ name }: ReadFile) =>
    files.find((each) => each.name === name.replace(/\.json$/, '.dsse.json'))?.bytes;
  const bundles = documents.filter(({ name }) => !ADDENDUM.test(name));
  const [bundle, ...others] = bundles;
  if (!bundle) throw new Error('there is no bundle among these files: drop the .json file and its .dsse.json file');
  if (others.length > 0) {
    throw new Error(`these are ${bundles.length} bundles: ${bundles.map(({ name }) => name).join(', ')}; drop one`);
  }
  const envelope = envelopeOf(bundle);
  if (!envelope) {
    const wanted = bundle.name.replace(/\.json$/, '.dsse.json');
    throw new Error(`${wanted} is missing: drop the signature of the bundle together with it`);
  }
  return {
    ...{ name: bundle.name, document: bundle.bytes, envelope },
    addenda: documents
      .filter(({ name }) => ADDENDUM.test(name))
      .map((each) => ({ name: each.name, document: each.bytes, envelope: envelopeOf(each) })),
    keys: keyFile ? new TextDecoder().decode(keyFile.bytes) : publishedKeys,
  };
}
