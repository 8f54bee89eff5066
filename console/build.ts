import { join, relative } from 'node:path';
import { build } from 'vite';

const ROOT = join(import.meta.dirname, '..');
/** Packages are pinned by the lockfile. */
const ALSO_READ = ['console/build.ts', 'console/vite.config.ts', 'console/index.html', 'package-lock.json'];

/** Builds the console into the folder of the first argument. Prints the files that it read, as JSON. */
const [outDir = ''] = process.argv.slice(2);
const result = await build({
  configFile: join(import.meta.dirname, 'vite.config.ts'),
  logLevel: 'error',
  build: { outDir, emptyOutDir: true },
});
const outputs = [result].flat().flatMap((each) => ('output' in each ? each.output : []));
const modules = outputs.flatMap((output) => (output.type === 'chunk' ? output.moduleIds : []));
const styles = outputs.flatMap((output) => (output.type === 'asset' ? output.originalFileNames : []));
const ours = [...modules, ...styles.map((name) => join(import.meta.dirname, name))]
  .map((id) => relative(ROOT, id.split('?')[0] ?? id))
  .filter((path) => /^(bin|console|client|lambdas|agent)\//.test(path));
console.log(JSON.stringify([...new Set([...ours, ...ALSO_READ])].sort()));
