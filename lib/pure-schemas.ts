/** The definition of a schema at the top level of a formatted file. It ends before the next line that is not indented. */
const SCHEMA = /^((?:export )?const \w+ = )((?:z|[A-Z]\w*)\s*\.(?:(?!;\n+(?![ \t)\]}\n]))[\s\S])*);$/gm;

/**
 * Marks schemas as free of side effects, so that esbuild leaves them out of bundles that do not use them. Most modules have schemas
 * beside what functions use of them, and creating those would be a fifth of the start of a function.
 */
export const withPureSchemas = (source: string): string => source.replace(SCHEMA, '$1/* @__PURE__ */ (() => $2)();');
