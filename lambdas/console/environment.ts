import * as z from 'zod';

export const DeploySiteEnvironment = z.object({ SITE_BUCKET: z.string() });

/** Beside the bundle of the function that deploys them. */
export const SITE_FOLDER = 'site';
