import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';

/** The URL of the single file, from the first lines that the build adds to it. */
declare const BUNDLE_URL: string;

/** The last line of the single file is this comment with the files in it. A comment costs no time at the start. */
export const FILES_COMMENT = '//files:';

/**
 * In the single-file program, modules that look for files beside themselves look here: the build replaces `import.meta`.
 * The files are written to a private folder when the first of them is needed, and deleted when the program ends.
 */
export const EMBEDDED_FILES = {
  get dirname(): string {
    return folder();
  },
  get url(): string {
    return pathToFileURL(join(folder(), 'countersign.mjs')).href;
  },
};

let created: string | undefined;

function folder(): string {
  created ??= extract();
  return created;
}

function extract(): string {
  const program = readFileSync(fileURLToPath(BUNDLE_URL), 'latin1');
  const packed = program.slice(program.lastIndexOf(FILES_COMMENT) + FILES_COMMENT.length);
  const files: Record<string, string> = JSON.parse(brotliDecompressSync(Buffer.from(packed, 'base64')).toString());
  // Only this user can read or write the folder, so nobody else can change what is loaded from it.
  const target = mkdtempSync(join(tmpdir(), 'countersign-'));
  process.on('exit', () => rmSync(target, { recursive: true, force: true }));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(target, path)), { recursive: true });
    writeFileSync(join(target, path), Buffer.from(content, 'base64'));
  }
  return target;
}
