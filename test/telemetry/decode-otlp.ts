import { createRequire } from 'node:module';
import { expect } from 'vitest';

interface Message {
  encode(message: unknown): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
  verify(message: unknown): string | null;
  fromObject(object: unknown): unknown;
  toObject(message: unknown, options: object): unknown;
}

/** The messages of OTLP as OpenTelemetry generates them from its protocol files. */
const { opentelemetry } = createRequire(import.meta.url)('@opentelemetry/otlp-transformer/build/src/generated/root.js');
const ExportRequest: Message = opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;

export interface DecodedSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Record<string, unknown>;
  status: { code?: string; message?: string };
  fromMs: number;
  toMs: number;
}

const ID_FIELDS = ['traceId', 'spanId', 'parentSpanId'];

/** OTLP/JSON has ids in hexadecimal; the messages have bytes. */
const withBytes = (value: unknown): unknown => mapIds(value, (id) => Buffer.from(String(id), 'hex'));
const withHex = (value: unknown): unknown => mapIds(value, (id) => Buffer.from(id as Uint8Array).toString('hex'));

function mapIds(value: unknown, change: (id: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => mapIds(each, change));
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, ID_FIELDS.includes(name) ? change(each) : mapIds(each, change)]),
  );
}

interface Decoded {
  resourceSpans: { scopeSpans: { spans: RawSpan[] }[] }[];
}
type RawSpan = Omit<DecodedSpan, 'attributes'> & { attributes: { key: string; value: Record<string, unknown> }[] };

/**
 * Decodes an export request: every field must be one of the protocol, with its type, and survive its binary form. Fields
 * that the protocol does not have would be missing in the result.
 */
export function decodeOtlp(request: unknown): DecodedSpan[] {
  const message = ExportRequest.fromObject(withBytes(request));
  expect(ExportRequest.verify(message)).toBeNull();
  const decoded = ExportRequest.decode(ExportRequest.encode(message).finish());
  const plain = (options: object) => withHex(ExportRequest.toObject(decoded, { longs: String, ...options }));
  expect(plain({})).toEqual(request);
  const { resourceSpans } = plain({ enums: String }) as Decoded;
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map(readable)));
}

const readable = (span: RawSpan): DecodedSpan => ({
  ...span,
  attributes: Object.fromEntries(span.attributes.map(({ key, value }) => [key, Object.values(value)[0]])),
  fromMs: Number(BigInt(span.startTimeUnixNano) / 1_000_000n),
  toMs: Number(BigInt(span.endTimeUnixNano) / 1_000_000n),
});
