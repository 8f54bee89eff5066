/** The queues whose dead letters the API shows. */
export const QUEUES = ['steps', 'evidence', 'approvals'] as const;
export type QueueName = (typeof QUEUES)[number];
