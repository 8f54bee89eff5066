/** Whether this is `npm run storm`, which searches for minutes where `npm test` proves each guarantee with a few cases. */
export const IS_STORM = process.env.STORM_RUNS !== undefined;
