/** The format of SQS requests and responses, and the limits that are checked before a queue is read or changed. */
import { hash, randomUUID } from 'node:crypto';
import { AwsError } from '../../aws/aws.ts';
import { type Fields, fieldReader, refuseOthers } from '../request-fields.ts';
import type { StoredMessage } from './store.ts';

export const MAX_MESSAGE_BYTES = 1_048_576;
export const MAX_BATCH_ENTRIES = 10;
const MAX_DELAY_SECONDS = 900;
const SENDER_ID = 'AIDALOCALHOST000000000';

export const read = fieldReader({ missing: 'MissingParameter', invalid: 'InvalidParameterValue' });

export const md5 = (text: string): string => hash('md5', text, 'hex');

export const MESSAGE_FIELDS = ['MessageBody', 'DelaySeconds', 'MessageGroupId'];

export function newMessage(
  queue: { name: string; delaySeconds: number },
  input: Fields,
  sentMs: number,
  traceHeader?: string,
) {
  const body = read.text(input, 'MessageBody');
  if (!isXmlText(body)) throw new AwsError('InvalidMessageContents', 'Invalid characters found in the message body.');
  const delaySeconds = read.integer(input, 'DelaySeconds', { min: 0, max: MAX_DELAY_SECONDS }) ?? queue.delaySeconds;
  const messageId = randomUUID();
  return {
    reply: { MessageId: messageId, MD5OfMessageBody: md5(body) },
    bytes: Buffer.byteLength(body),
    message: {
      queue: queue.name,
      messageId,
      groupId: read.optionalText(input, 'MessageGroupId') ?? '',
      body,
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
  };
}

export function receivedMessage(message: StoredMessage, attributeNames: string[]): Fields {
  const attributes = Object.entries(systemAttributes(message)).filter(
    ([name]) => attributeNames.includes('All') || attributeNames.includes(name),
  );
  return {
    MessageId: message.messageId,
    ReceiptHandle: receiptHandle(message),
    Body: message.body,
    MD5OfBody: md5(message.body),
    ...(attributes.length === 0 ? {} : { Attributes: Object.fromEntries(attributes) }),
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

export function batchEntries(input: Fields, fields: string[]): Fields[] {
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
  for (const entry of entries) refuseOthers(entry, ['Id', ...fields], 'SQS batch entry');
  return entries;
}

export function failedEntry(entry: Fields, error: unknown): Fields {
  if (!(error instanceof AwsError)) throw error;
  return { Id: entry.Id, SenderFault: true, Code: error.code, Message: error.message };
}

export function tooLong(bytes: number): AwsError {
  const limit = `One or more parameters are invalid. Reason: Message must be shorter than ${MAX_MESSAGE_BYTES} bytes`;
  return new AwsError('InvalidParameterValue', `${limit}; it has ${bytes}.`);
}

/** SQS accepts only the characters of XML 1.0, also over JSON. */
function isXmlText(body: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to find.
  return !/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/.test(body) && body.isWellFormed();
}
