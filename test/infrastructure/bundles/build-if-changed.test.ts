import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { buildIfChanged } from '../../../lib/build-if-changed.ts';
import { temporaryFolder } from '../../local/cloud/wire.ts';

let folder: ReturnType<typeof temporaryFolder>;
const path = (name: string) => join(folder.path, name);
beforeEach(() => {
  folder = temporaryFolder();
  writeFileSync(path('entry.ts'), "import { value } from './value.ts'; console.log(value);");
  writeFileSync(path('value.ts'), "export const value: string = 'first';");
});
afterEach(() => folder.remove());

/** The names of the files that it writes. */
function build(minify = false): string[] {
  const written: string[] = [];
  const options = { entryPoints: ['entry.ts'], absWorkingDir: folder.path, outdir: path('out'), bundle: true, minify };
  const outputs = buildIfChanged(options, path('out/record.json'), (file, contents) => {
    written.push(file.slice(folder.path.length + 1));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, contents);
  });
  expect(Object.keys(outputs['out/entry.js']?.inputs ?? {})).toEqual(['value.ts', 'entry.ts']);
  return written;
}

describe('a build', () => {
  it('is not made again if nothing has changed', () => {
    expect(build()).toEqual(['out/entry.js', 'out/record.json']);
    expect(build()).toEqual([]);
  });

  it('is made again if a file that it read has changed', () => {
    build();
    writeFileSync(path('value.ts'), "export const value = 'second';");
    expect(build()).toContain('out/entry.js');
    expect(readFileSync(path('out/entry.js'), 'utf8')).toContain('second');
    expect(build()).toEqual([]);
  });

  it('is made again if its settings have changed', () => {
    build();
    expect(build(true)).toContain('out/entry.js');
  });

  it.each([
    ['a file that it made is edited', () => writeFileSync(path('out/entry.js'), 'edited')],
    ['a file that it made is deleted', () => rmSync(path('out/entry.js'))],
    ['its record cannot be read', () => writeFileSync(path('out/record.json'), '{')],
  ])('is made again if %s', (_what, change) => {
    build();
    change();
    expect(build()).toContain('out/entry.js');
  });
});
