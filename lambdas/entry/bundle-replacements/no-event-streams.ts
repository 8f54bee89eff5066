/**
 * Bundles contain this file in place of `@smithy/core/event-streams` (lib/bundle-functions.ts). No function uses event streams, but
 * every client can import them later, so bundles contained them and could leave nothing out of the 160 modules that they share: a
 * fifteenth of the bundle of a webhook.
 */
function unsupported(): never {
  throw new Error(
    'bundles of functions contain no event streams (lambdas/entry/bundle-replacements/no-event-streams.ts)',
  );
}

export const eventStreamSerdeProvider = unsupported;
export const EventStreamSerde = unsupported;
/** The client of S3 asks for it when it is created. */
export const resolveEventStreamSerdeConfig = <Config>(config: Config): Config => config;
