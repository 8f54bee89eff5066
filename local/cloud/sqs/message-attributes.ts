/** Message attributes of SQS: their checks, their size, and the digest by which SDKs verify them. */
import { createHash } from 'node:crypto';
import { AwsError } from '../../aws/aws.ts';
import { isFields } from '../request-fields.ts';

export interface MessageAttribute {
  DataType: string;
  StringValue?: string;
  /** Base64, as the JSON protocol carries bytes. */
  BinaryValue?: string;
}

export type MessageAttributes = Record<string, MessageAttribute>;

const MOST_ATTRIBUTES = 10;
const STRING_TRANSPORT = Buffer.from([1]);
const BINARY_TRANSPORT = Buffer.from([2]);

export const md5 = (data: string | Buffer): string => createHash('md5').update(data).digest('hex');

export function parseMessageAttributes(value: unknown): MessageAttributes | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isFields(value)) throw invalid('MessageAttributes must be a map');
  const entries = Object.entries(value);
  if (entries.length > MOST_ATTRIBUTES) {
    throw invalid(`Number of message attributes [${entries.length}] exceeds the allowed maximum [${MOST_ATTRIBUTES}]`);
  }
  if (entries.length === 0) return undefined;
  return Object.fromEntries(entries.map(([name, attribute]) => [name, parseAttribute(name, attribute)]));
}

function parseAttribute(name: string, value: unknown): MessageAttribute {
  if (!isFields(value)) throw invalid(`The message attribute '${name}' must be a structure`);
  const { DataType, StringValue, BinaryValue } = value;
  if (typeof DataType !== 'string' || !/^(String|Number|Binary)(\..+)?$/.test(DataType)) {
    throw invalid(`The message attribute '${name}' has an invalid message attribute type`);
  }
  const content = DataType.startsWith('Binary') ? BinaryValue : StringValue;
  if (typeof content !== 'string' || content === '') {
    throw invalid(`The message attribute '${name}' must contain a non-empty value of type ${DataType}`);
  }
  return DataType.startsWith('Binary') ? { DataType, BinaryValue: content } : { DataType, StringValue: content };
}

/** AWS's algorithm: names in order, each with type, a transport byte and value, every part led by its 4-byte length. */
export function md5OfAttributes(attributes: MessageAttributes): string {
  const hash = createHash('md5');
  const part = (bytes: Buffer) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    hash.update(length).update(bytes);
  };
  for (const name of Object.keys(attributes).sort()) {
    const attribute = attributes[name];
    if (attribute === undefined) continue;
    part(Buffer.from(name));
    part(Buffer.from(attribute.DataType));
    hash.update(attribute.BinaryValue === undefined ? STRING_TRANSPORT : BINARY_TRANSPORT);
    part(bytesOf(attribute));
  }
  return hash.digest('hex');
}

export function sizeOfAttributes(attributes: MessageAttributes): number {
  let size = 0;
  for (const [name, attribute] of Object.entries(attributes)) {
    size += Buffer.byteLength(name) + Buffer.byteLength(attribute.DataType) + bytesOf(attribute).length;
  }
  return size;
}

/** `All`, `.*`, exact names and `prefix.*`, as ReceiveMessage asks for them. */
export function selectAttributes(attributes: MessageAttributes, wanted: string[]): MessageAttributes {
  const selected = Object.entries(attributes).filter(([name]) =>
    wanted.some(
      (want) => want === 'All' || want === name || (want.endsWith('.*') && name.startsWith(want.slice(0, -2))),
    ),
  );
  return Object.fromEntries(selected);
}

function bytesOf({ StringValue, BinaryValue }: MessageAttribute): Buffer {
  return BinaryValue === undefined ? Buffer.from(StringValue ?? '') : Buffer.from(BinaryValue, 'base64');
}

function invalid(message: string): AwsError {
  return new AwsError('InvalidParameterValue', `${message}.`);
}
