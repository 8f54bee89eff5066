/** Why a credential is refused, and what to do. The caller reads it, so it contains nothing of other callers. */
export class Unauthenticated extends Error {}
