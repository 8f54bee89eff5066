import type { AwsCall } from './aws-calls.ts';
import type { FaultRule } from './faults.ts';
import { errorReply, type WireReply } from './wire.ts';

const THROTTLED: Record<string, { code: string; status: number }> = {
  dynamodb: { code: 'ProvisionedThroughputExceededException', status: 400 },
  sqs: { code: 'RequestThrottled', status: 403 },
  s3: { code: 'SlowDown', status: 503 },
  bedrock: { code: 'ThrottlingException', status: 429 },
};

/** The answer that stands in for the call's effect, or undefined for faults that let the call happen. */
export function faultReply(rule: FaultRule, call: AwsCall): WireReply | undefined {
  const { service } = call;
  const message = `injected by fault rule ${rule.id} (${rule.kind})`;
  if (rule.kind === 'throttle') {
    const usual = THROTTLED[service] ?? { code: 'ThrottlingException', status: 400 };
    return errorReply({ service, code: rule.code ?? usual.code, message, status: rule.status ?? usual.status });
  }
  if (rule.kind === 'error') {
    const code = rule.code ?? (service === 's3' ? 'InternalError' : 'InternalServerError');
    return errorReply({ service, code, message, status: rule.status ?? 500 });
  }
  return rule.kind === 'conflict' ? conflictReply(call, message) : undefined;
}

/** The engine runs one transaction at a time and so never conflicts; DynamoDB does, on the item that another one holds. */
function conflictReply({ service, input }: AwsCall, message: string): WireReply {
  const { TransactItems: items } = input as { TransactItems?: unknown[] };
  if (!items) return errorReply({ service, code: 'TransactionConflictException', message, status: 400 });
  const reasons = items.map((_item, index) =>
    index === 0 ? { Code: 'TransactionConflict', Message: 'Transaction is ongoing for the item' } : { Code: 'None' },
  );
  return errorReply({
    service,
    code: 'TransactionCanceledException',
    message: `Transaction cancelled, please refer cancellation reasons for specific reasons [${reasons.map(({ Code }) => Code).join(', ')}]: ${message}`,
    status: 400,
    details: { CancellationReasons: reasons },
  });
}
