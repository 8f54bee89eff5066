import type { QueueDefinition } from '../../../local/cloud/sqs/sqs.ts';

const queue = (name: string): QueueDefinition => ({
  logicalId: name,
  name,
  url: `http://127.0.0.1:4566/000000000000/${name}`,
  arn: `arn:aws:sqs:us-east-1:000000000000:${name}`,
  visibilityTimeoutSeconds: 30,
  delaySeconds: 0,
  retentionSeconds: 345_600,
});

export const ordersDead = queue('orders-dead');
export const orders: QueueDefinition = {
  ...queue('orders'),
  redrive: { deadLetterArn: ordersDead.arn, maxReceiveCount: 3 },
};
export const queues = [orders, ordersDead];
