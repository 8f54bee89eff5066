import * as z from 'zod';
import { route } from '../route.ts';

export const doctorRoutes = {
  examineTenant: route({
    method: 'GET',
    path: '/api/v1/doctor',
    right: 'setup:check',
    summary: 'Lists what is missing or wrong in the setup of the tenant, with the command that fixes it',
    responses: {
      200: z.object({
        tenant: z.string(),
        stage: z.string(),
        kind: z.enum(['prod', 'staging', 'dev']),
        version: z.string().meta({ description: 'The version of Countersign that is deployed' }),
        findings: z.array(
          z.object({
            level: z.enum(['error', 'warning']),
            subject: z.string(),
            problem: z.string(),
            fix: z.string(),
          }),
        ),
      }),
    },
  }),
};
