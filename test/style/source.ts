import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');

export interface SourceFile {
  /** Relative to the root of the repository: `lambdas/run/run.ts`. */
  path: string;
  text: string;
  imports: Import[];
}

export interface Import {
  /** A package, or a path relative to the root of the repository. */
  from: string;
  /** The imported names; empty for a whole namespace. */
  names: string[];
  typesOnly: boolean;
}

const IMPORT = /^import\s+(type\s+)?([^'"]*?)\s*(?:from\s+)?['"]([^'"]+)['"]/gm;

export function sourceFiles(...patterns: string[]): SourceFile[] {
  const paths = globSync(patterns, { cwd: ROOT, exclude: ['**/node_modules/**', 'cdk.out/**'] });
  return paths.sort().map((path) => {
    const text = readFileSync(join(ROOT, path), 'utf8');
    const imports = [...text.matchAll(IMPORT)].map(([, type, clause = '', specifier = '']) => {
      const names = (/\{([^}]*)\}/.exec(clause)?.[1] ?? '').split(',').map((name) => name.trim());
      return {
        from: specifier.startsWith('.') ? relative(ROOT, join(ROOT, dirname(path), specifier)) : specifier,
        names: names.filter(Boolean).map((name) => name.replace(/^type\s+/, '').replace(/\s+as\s.*/, '')),
        typesOnly:
          type !== undefined || (names.some(Boolean) && names.every((name) => !name || name.startsWith('type '))),
      };
    });
    return { path, text, imports };
  });
}
