import * as z from 'zod';
import { StageEnvironment } from '../entry/tenant-secrets.ts';
import { SigningAlgorithm } from '../evidence/environment.ts';
import { RunChangerEnvironment } from '../run-changes/environment.ts';

export const WorkerEnvironment = RunChangerEnvironment.extend({
  APPROVAL_MACHINE_ARN: z.string(),
  /** The function that posts the cards of new approvals. */
  ANNOUNCE_FUNCTION: z.string(),
  ...StageEnvironment,
  /** The URL of this stage's own API: the only address on its own machine that `http.request` may call, if it is listed. */
  OWN_URL: z.url(),
  /** The evidence key: it signs the assignments of agents, too. */
  SIGNING_KEY_ARN: z.string(),
  SIGNING_ALGORITHM: SigningAlgorithm,
  /** Where "sync now" is sent to agents, if the stage has the live feed. */
  LIVE_CALLBACK_URL: z.url().optional(),
  /** The secret that signs the tokens of sessions. */
  SESSION_SECRET_ARN: z.string(),
});
