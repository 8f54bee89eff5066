/**
 * Bundles contain this file in place of `node:http` (lib/bundle-functions.ts). An import of `node:http` reads all of its exports,
 * and one of them, WebSocket, loads the whole of undici: a quarter of the import of a function that never calls `fetch`.
 */
const http = process.getBuiltinModule('node:http');

export default http;
export const { Agent, request, STATUS_CODES } = http;
