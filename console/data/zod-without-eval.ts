/**
 * Loaded before everything else, and without zod: zod reads its configuration from this global variable. Otherwise it would
 * try to make functions from text when the first schema is defined, which the content security policy forbids and reports.
 */
Object.assign(globalThis, { __zod_globalConfig: { jitless: true } });
