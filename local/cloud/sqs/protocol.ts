/** How SQS requests and answers look on the wire, and the limits checked before a queue is touched. */
import { randomUUID } from 'node:crypto';
import { AwsError } from '../../aws/aws.ts';
import { type Fields, fieldReader } from '../request-fields.ts';
import {
  md5,
  md5OfAttributes,
  parseMessageAttributes,
  selectAttributes,
  sizeOfAttributes,
} from './message-attributes.ts';
import type { StoredMessage } from './store.ts';

export const MAX_MESSAGE_BYTES = 1_048_576;
export const MAX_BATCH_ENTRIES = 10;
const MAX_DELAY_SECONDS = 900;
const SENDER_ID = 'AIDALOCALHOST000000000';

/** What the query protocol called these errors; AWS still sends it in the header `x-amzn-query-error` ("code;Sender"). */
export const SQS_QUERY_ERROR_CODES: Record<string, string> = {
  QueueDoesNotExist: 'AWS.SimpleQueueService.NonExistentQueue',
  EmptyBatchRequest: 'AWS.SimpleQueueService.EmptyBatchRequest',
  TooManyEntriesInBatchRequest: 'AWS.SimpleQueueService.TooManyEntriesInBatchRequest',
  BatchEntryIdsNotDistinct: 'AWS.SimpleQueueService.BatchEntryIdsNotDistinct',
  BatchRequestTooLong: 'AWS.SimpleQueueService.BatchRequestTooLong',
  InvalidBatchEntryId: 'AWS.SimpleQueueService.InvalidBatchEntryId',
  MessageNotInflight: 'AWS.SimpleQueueService.MessageNotInflight',
};

export const read = fieldReader({ missing: 'MissingParameter', invalid: 'InvalidParameterValue' });

export function newMessage(
  queue: { name: string; delaySeconds: number },
  input: Fields,
  sentMs: number,
  traceHeader?: string,
) {
  const body = read.text(input, 'MessageBody');
  if (!isXmlText(body)) throw new AwsError('InvalidMessageContents', 'Invalid characters found in the message body.');
  const delaySeconds = read.integer(input, 'DelaySeconds', { min: 0, max: MAX_DELAY_SECONDS }) ?? queue.delaySeconds;
  const groupId = read.optionalText(input, 'MessageGroupId') ?? '';
  const attributes = parseMessageAttributes(input.MessageAttributes);
  const messageId = randomUUID();
  const answer: Fields = { MessageId: messageId, MD5OfMessageBody: md5(body) };
  if (attributes !== undefined) answer.MD5OfMessageAttributes = md5OfAttributes(attributes);
  return {
    answer,
    bytes: Buffer.byteLength(body) + (attributes === undefined ? 0 : sizeOfAttributes(attributes)),
    message: {
      queue: queue.name,
      messageId,
      groupId,
      body,
      attributes: attributes === undefined ? null : JSON.stringify(attributes),
      traceHeader: traceHeader ?? null,
      sentMs,
      visibleMs: sentMs + delaySeconds * 1000,
    },
  };
}

export function systemAttributes(message: StoredMessage): Record<string, string> {
  return {
    SenderId: SENDER_ID,
    SentTimestamp: String(Math.round(message.sentMs)),
    ApproximateReceiveCount: String(message.receiveCount),
    ApproximateFirstReceiveTimestamp: String(Math.round(message.firstReceiveMs ?? 0)),
    ...(message.groupId === '' ? {} : { MessageGroupId: message.groupId }),
    ...(message.traceHeader === null ? {} : { AWSTraceHeader: message.traceHeader }),
    ...(message.deadLetterSource === null ? {} : { DeadLetterQueueSourceArn: message.deadLetterSource }),
  };
}

export function onTheWire(message: StoredMessage, wanted: { system: string[]; message: string[] }): Fields {
  const system = Object.entries(systemAttributes(message)).filter(
    ([name]) => wanted.system.includes('All') || wanted.system.includes(name),
  );
  const attributes =
    message.attributes === null ? {} : selectAttributes(JSON.parse(message.attributes), wanted.message);
  return {
    MessageId: message.messageId,
    ReceiptHandle: receiptHandle(message),
    Body: message.body,
    MD5OfBody: md5(message.body),
    ...(system.length === 0 ? {} : { Attributes: Object.fromEntries(system) }),
    ...(Object.keys(attributes).length === 0
      ? {}
      : { MessageAttributes: attributes, MD5OfMessageAttributes: md5OfAttributes(attributes) }),
  };
}

export function receiptHandle({ queue, seq, receipt }: StoredMessage): string {
  return Buffer.from(`${queue} ${seq} ${receipt}`).toString('base64');
}

export function parseReceipt(queue: { name: string }, handle: string): { seq: number; receipt: string } {
  const [name, seq, receipt] = Buffer.from(handle, 'base64').toString().split(' ');
  if (name !== queue.name || receipt === undefined || !Number.isInteger(Number(seq))) {
    throw new AwsError('ReceiptHandleIsInvalid', `The input receipt handle "${handle}" is not a valid receipt handle.`);
  }
  return { seq: Number(seq), receipt };
}

export function batchEntries(input: Fields): Fields[] {
  const entries = read.list(input, 'Entries');
  if (entries.length === 0) {
    throw new AwsError('EmptyBatchRequest', 'There should be at least one entry in the request.');
  }
  if (entries.length > MAX_BATCH_ENTRIES) {
    throw new AwsError(
      'TooManyEntriesInBatchRequest',
      `Maximum number of entries per request are ${MAX_BATCH_ENTRIES}. You have sent ${entries.length}.`,
    );
  }
  const ids = entries.map((entry) => read.text(entry, 'Id'));
  const malformed = ids.find((id) => !/^[\w-]{1,80}$/.test(id));
  if (malformed !== undefined) {
    throw new AwsError('InvalidBatchEntryId', `The batch entry id ${malformed} is not 1 to 80 of A-Z a-z 0-9 _ -.`);
  }
  if (new Set(ids).size < ids.length) {
    throw new AwsError('BatchEntryIdsNotDistinct', 'Two or more batch entries in the request have the same Id.');
  }
  return entries;
}

export function eachEntry(input: Fields, run: (entry: Fields) => Fields): Fields {
  const Successful: Fields[] = [];
  const Failed: Fields[] = [];
  for (const entry of batchEntries(input)) {
    try {
      run(entry);
      Successful.push({ Id: entry.Id });
    } catch (error) {
      Failed.push(failedEntry(entry, error));
    }
  }
  return { Successful, Failed };
}

export function failedEntry(entry: Fields, error: unknown): Fields {
  if (!(error instanceof AwsError)) throw error;
  return { Id: entry.Id, SenderFault: true, Code: error.code, Message: error.message };
}

export function tooLong(bytes: number): AwsError {
  const limit = `One or more parameters are invalid. Reason: Message must be shorter than ${MAX_MESSAGE_BYTES} bytes`;
  return new AwsError('InvalidParameterValue', `${limit}; it has ${bytes}.`);
}

/** The characters XML 1.0 allows; SQS refuses the others even over JSON. */
function isXmlText(body: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the very characters to find.
  return !/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/.test(body) && body.isWellFormed();
}
