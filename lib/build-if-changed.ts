import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BuildOptions, buildSync, type Metafile, version } from 'esbuild';

interface BuildRecord {
  settings: string;
  /** Every file that esbuild read or wrote. */
  files: string[];
  contents: string;
  outputs: Metafile['outputs'];
}

type Options = BuildOptions & { absWorkingDir: string };

/**
 * esbuild needs seconds for all functions. It runs again only if the settings, a file that it read, or a file that it made has
 * changed. Returns what is in each of the files that it made.
 */
export function buildIfChanged(
  options: Options,
  recordFile: string,
  write: (path: string, contents: Uint8Array) => void,
): Metafile['outputs'] {
  const settings = sha256(JSON.stringify([version, options]));
  const last = readRecord<BuildRecord>(recordFile);
  if (last?.settings === settings && contentsOf(last.files) === last.contents) return last.outputs;
  const { outputFiles, metafile } = buildSync({ ...options, metafile: true, write: false });
  for (const { path, contents } of outputFiles) write(path, contents);
  const read = Object.keys(metafile.inputs).map((path) => join(options.absWorkingDir, path));
  const files = [...read, ...outputFiles.map(({ path }) => path)];
  const record: BuildRecord = { settings, files, contents: contentsOf(files), outputs: metafile.outputs };
  write(recordFile, Buffer.from(JSON.stringify(record)));
  return metafile.outputs;
}

/** The record of the last build. Undefined before the first build. */
export function readRecord<Record>(file: string): Record | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

/** One hash of these files, which are in the folder, or anywhere if their paths are complete. */
export function contentsOf(files: readonly string[], folder = ''): string {
  return sha256(files.map((file) => `${file} ${contentOf(join(folder, file))}\n`).join(''));
}

function contentOf(file: string): string {
  try {
    return sha256(readFileSync(file));
  } catch {
    return 'none';
  }
}

const sha256 = (content: string | Uint8Array) => createHash('sha256').update(content).digest('hex');
