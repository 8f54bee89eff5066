import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { localSecret } from '../../bin/commands/local-stage.ts';
import { signedHeaders } from '../../bin/commands/webhook/sign-delivery.ts';

const EVENTS = join(import.meta.dirname, '..', '..', 'events');

/** What the console offers to send, the first one first. */
export const SAMPLES = [
  { file: 'servicenow-incident-p1.json', source: 'servicenow', text: 'Send the sample incident' },
  { file: 'servicenow-incident-p2.json', source: 'servicenow', text: 'Send another incident' },
  { file: 'github-issue-opened.json', source: 'github', text: 'Open a GitHub issue' },
  { file: 'github-issue-reopened.json', source: 'github', text: 'Reopen a GitHub issue' },
  { file: 'github-issue-needs-triage.json', source: 'github', text: 'Let the AI agent triage a GitHub issue' },
] as const;

const files = SAMPLES.map(({ file }) => file);
export const SampleRequest = z.strictObject({ file: z.enum(files), tenant: z.string().regex(/^[a-z0-9-]{1,40}$/) });

/** Signs a sample webhook as the external system does, and sends it to the API of this host. */
export async function sendSample(hostUrl: string, request: z.infer<typeof SampleRequest>, nowMs: number) {
  const { file, tenant } = request;
  const source = SAMPLES.find((sample) => sample.file === file)?.source ?? 'github';
  const body = readFileSync(join(EVENTS, file));
  const headers = signedHeaders(source, body, { secret: localSecret(source, tenant), event: 'issues', nowMs });
  const response = await fetch(`${hostUrl}/webhooks/${source}/${tenant}`, {
    method: 'POST',
    headers,
    body: new Uint8Array(body),
  });
  const received = (await response.json()) as { runIds?: string[]; deduplicated?: boolean; detail?: string };
  const { runIds = [], deduplicated = false, detail } = received;
  return { runIds, deduplicated, ...(detail !== undefined && { error: detail }) };
}
