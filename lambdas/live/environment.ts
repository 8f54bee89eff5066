import * as z from 'zod';

/** `https://{api}.execute-api.{region}.amazonaws.com/{stage}`: where messages to open connections are sent. */
const CALLBACK_URL = z.url();

export const LiveEnvironment = z.object({ RUN_TABLE: z.string(), LIVE_CALLBACK_URL: CALLBACK_URL });
