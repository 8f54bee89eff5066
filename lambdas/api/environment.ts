import * as z from 'zod';

export const AuthorizerEnvironment = z.object({ RUN_TABLE: z.string() });

export const ApiEnvironment = z.object({ RUN_TABLE: z.string(), CURSOR_SECRET_ARN: z.string() });
