/** A problem that the person who runs the agent can fix. The message says how. */
export class AgentError extends Error {}
