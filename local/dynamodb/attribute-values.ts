import { AwsError } from '../aws/aws.ts';

/** A value of an attribute as in the JSON protocol: `{"S": "text"}`, `{"N": "1"}`, `{"B": "base64"}`, … */
export type AttributeValue = Record<string, unknown>;
export type Item = Record<string, AttributeValue>;

/** DynamoDB's limit for one item. */
const ITEM_MAX_BYTES = 400 * 1024;

export const invalid = (message: string): AwsError => new AwsError('ValidationException', message);

/** The size as DynamoDB counts it: names and values. */
export function itemBytes(item: Item): number {
  let bytes = 0;
  for (const name in item) bytes += Buffer.byteLength(name) + valueBytes(item[name] ?? {});
  return bytes;
}

/** What lists and maps need besides their elements, and each element. */
const NESTED_BYTES = { container: 3, element: 1 };

function valueBytes({ S, N, B, SS, NS, BS, L, M }: AttributeValue): number {
  if (typeof S === 'string') return Buffer.byteLength(S);
  if (typeof N === 'string') return numberBytes(N);
  if (typeof B === 'string') return Buffer.byteLength(B, 'base64');
  const { container, element } = NESTED_BYTES;
  if (Array.isArray(L)) return L.reduce((sum, each) => sum + element + valueBytes(each), container);
  if (typeof M === 'object' && M !== null) {
    return itemBytes(M as Item) + container + element * Object.keys(M).length;
  }
  if (Array.isArray(SS)) return SS.reduce((sum, each) => sum + Buffer.byteLength(each), 0);
  if (Array.isArray(NS)) return NS.reduce((sum, each) => sum + numberBytes(each), 0);
  if (Array.isArray(BS)) return BS.reduce((sum, each) => sum + Buffer.byteLength(each, 'base64'), 0);
  // A Boolean or null.
  return 1;
}

/** Two digits are one byte, and there is one for the exponent. */
function numberBytes(text: string): number {
  const digits = text.replace(/^-?0*|\D/g, '').length;
  return Math.ceil(digits / 2) + 1 + (text.startsWith('-') ? 1 : 0);
}

const TYPES = new Set(['S', 'N', 'B', 'BOOL', 'NULL', 'L', 'M', 'SS', 'NS', 'BS']);

/** Refuses what is not an item: an attribute without a type, a number that is none, more than 400 KB. */
export function checkItem(item: Item): number {
  for (const value of Object.values(item)) checkValue(value);
  const bytes = itemBytes(item);
  if (bytes > ITEM_MAX_BYTES) throw invalid('Item size has exceeded the maximum allowed size');
  return bytes;
}

export function checkValue(value: AttributeValue): void {
  const [type = '', ...others] = Object.keys(value ?? {});
  if (!TYPES.has(type) || others.length > 0) {
    throw invalid('Supplied AttributeValue has no or more than one datatypes set, must contain exactly one of them');
  }
  if (type === 'N' && !isNumber(value.N)) {
    throw invalid(`The parameter cannot be converted to a numeric value: ${String(value.N)}`);
  }
}

/** DynamoDB stores this many digits of a number, and refuses more. */
const DIGITS_MAX = 38;

const isNumber = (text: unknown) =>
  typeof text === 'string' &&
  text.trim() !== '' &&
  Number.isFinite(Number(text)) &&
  !/[xob]/i.test(text) &&
  significantDigits(text) <= DIGITS_MAX;

const significantDigits = (text: string): number => {
  const [digits = ''] = text.toLowerCase().split('e');
  return digits.replace(/\D/g, '').replace(/^0+|0+$/g, '').length;
};

export const typeOf = (value: AttributeValue): string => Object.keys(value)[0] ?? '';

/** Negative, zero or positive. Undefined for values of different types, or of types without an order. */
export function compare(left: AttributeValue, right: AttributeValue): number | undefined {
  const type = typeOf(left);
  if (type !== typeOf(right)) return undefined;
  if (type === 'N') return Number(left.N) - Number(right.N);
  if (type === 'S') return Buffer.compare(Buffer.from(String(left.S)), Buffer.from(String(right.S)));
  if (type === 'B') return Buffer.compare(bytesOf(left), bytesOf(right));
  return undefined;
}

const bytesOf = ({ B }: AttributeValue): Buffer => Buffer.from(String(B), 'base64');
