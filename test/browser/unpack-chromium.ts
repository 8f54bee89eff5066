import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';

interface Chromium {
  executablePath: string;
  env: Record<string, string>;
}

const BUILD = join(import.meta.dirname, '..', '..', '.build');
const { version } = createRequire(import.meta.url)('../../node_modules/@sparticuz/chromium/package.json') as {
  version: string;
};
/** The package unpacks into the folder of temporary files, and its libraries only if it believes to be in a Lambda function. */
const UNPACK = "import chromium from '@sparticuz/chromium'; await chromium.executablePath();";
const LOOKS_LIKE_LAMBDA = { AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x' };
/** The configuration of the package looks for fonts in `/tmp`. A relative folder of the cache would be in the working directory. */
const fontsIn = (folder: string): string =>
  `<?xml version="1.0"?><fontconfig><dir prefix="relative">fonts</dir><cachedir>${folder}/font-cache</cachedir></fontconfig>`;

/**
 * The browser from its package, unpacked once for all test runs. Test files that unpack at the same time each use a folder of
 * their own; the first to finish renames it, so nobody sees a part of a browser.
 */
export async function unpackChromium(): Promise<Chromium> {
  const folder = join(BUILD, `chromium-${version}`);
  if (!existsSync(folder)) await unpackInto(folder);
  return {
    executablePath: join(folder, 'chromium'),
    env: { LD_LIBRARY_PATH: join(folder, 'al2023', 'lib'), FONTCONFIG_PATH: join(folder, 'fonts') },
  };
}

async function unpackInto(folder: string): Promise<void> {
  await mkdir(BUILD, { recursive: true });
  const own = await mkdtemp(`${folder}-`);
  try {
    await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', UNPACK], {
      cwd: import.meta.dirname,
      env: { ...process.env, ...LOOKS_LIKE_LAMBDA, TMPDIR: own },
    });
    await writeFile(join(own, 'fonts', 'fonts.conf'), fontsIn(folder));
    await rename(own, folder);
  } catch (error) {
    // Another test file was faster.
    if (!existsSync(folder)) throw error;
  } finally {
    await rm(own, { recursive: true, force: true });
  }
}
