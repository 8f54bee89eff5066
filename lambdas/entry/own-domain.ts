import * as z from 'zod';
import { equalInConstantTime } from './constant-time.ts';

/** Of functions that API Gateway invokes, in a stage with a domain name of its own. */
export const OwnDomainEnvironment = z.object({
  /** The domain name that callers use. */
  DOMAIN: z.string().optional(),
  /** CloudFront sends it with every request. Present if all requests must pass through CloudFront, and so the firewall. */
  ORIGIN_SECRET: z.string().min(32).optional(),
});
export type OwnDomain = z.infer<typeof OwnDomainEnvironment>;

export const ORIGIN_HEADER = 'x-countersign-origin';

type Headers = Readonly<Record<string, string | undefined>>;

/**
 * Undefined if the request may be handled, else a sentence for its sender. API Gateway has an address of its own, which
 * CloudFront needs; requests that others send there have not passed the firewall.
 */
export function refusalOfDirectRequest(
  { DOMAIN, ORIGIN_SECRET }: OwnDomain,
  headers: Headers = {},
): string | undefined {
  if (ORIGIN_SECRET === undefined) return undefined;
  const [, sent = ''] = Object.entries(headers).find(([name]) => name.toLowerCase() === ORIGIN_HEADER) ?? [];
  if (equalInConstantTime(sent, ORIGIN_SECRET)) return undefined;
  return `this stage accepts requests only at https://${DOMAIN}; send the request there`;
}

/** CloudFront calls API Gateway by the name of the API. Functions see the name that the caller used. */
export function atOwnDomain<Event extends { requestContext: { domainName?: string } }>(
  { DOMAIN }: OwnDomain,
  event: Event,
): Event {
  if (DOMAIN === undefined) return event;
  return { ...event, requestContext: { ...event.requestContext, domainName: DOMAIN } };
}
