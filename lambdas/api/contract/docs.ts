import * as z from 'zod';
import { route } from './route.ts';
import { FileBytes } from './schemas.ts';

/** The files that the documentation page loads, with their media types. */
export const DOCS_FILES = {
  'swagger-ui.css': 'text/css',
  'swagger-ui-bundle.js': 'text/javascript',
  'start.js': 'text/javascript',
} as const;
export type DocsFile = keyof typeof DOCS_FILES;

export const docsRoutes = {
  getOpenApi: route({
    method: 'GET',
    path: '/openapi.json',
    right: 'public',
    summary: 'Returns this document: OpenAPI 3.1',
    responses: { 200: FileBytes },
    responseType: 'application/json',
  }),
  getDocs: route({
    method: 'GET',
    path: '/docs',
    right: 'public',
    summary: 'Returns the documentation page of the API, which loads nothing from other hosts',
    responses: { 200: FileBytes },
    responseType: 'text/html',
  }),
  getDocsFile: route({
    method: 'GET',
    path: '/docs/{file}',
    right: 'public',
    summary: 'Returns a file of the documentation page',
    params: z.object({
      file: z.enum(Object.keys(DOCS_FILES) as [DocsFile]).meta({ description: 'Name of the file' }),
    }),
    responses: { 200: FileBytes },
    responseType: ['text/css', 'text/javascript'],
  }),
};
