/** Secrets Manager in one private file. It stores the current version of each secret, and one under another label. */
import { randomInt, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AwsError, type JsonService } from '../aws/aws.ts';
import { replaceFile } from './durable-file.ts';
import { type Fields, fieldReader, findOperation, type Operation } from './request-fields.ts';

export interface SecretDefinition {
  arn: string;
  name: string;
  /** The value until something else is stored. */
  initialValue?: string;
  /** How to generate the first value if there is no `initialValue`. */
  generate?: { excludePunctuation?: boolean; secretStringTemplate?: string; generateStringKey?: string };
}

interface Version {
  versionId: string;
  createdMs: number;
  text: string;
}

/** The current version, and the newest one that was stored under another label. */
interface StoredValue extends Version {
  staged?: Version & { label: string };
}

const CURRENT = 'AWSCURRENT';

const GENERATED_LENGTH = 32;
const MAX_SECRET_BYTES = 65_536;
const LETTERS_AND_DIGITS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
const PUNCTUATION = '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~';

const read = fieldReader({ missing: 'InvalidParameterException', invalid: 'InvalidParameterException' });

export class LocalSecretsManager implements JsonService {
  readonly #secrets: SecretDefinition[];
  readonly #path: string;
  readonly #now: () => number;
  /** By ARN. */
  readonly #values: Record<string, StoredValue>;
  readonly #operations: Record<string, Operation<(input: Fields) => Fields>> = {
    GetSecretValue: [['SecretId'], (input) => this.#get(input)],
    PutSecretValue: [['SecretId', 'SecretString', 'ClientRequestToken', 'VersionStages'], (input) => this.#put(input)],
    UpdateSecretVersionStage: [
      ['SecretId', 'VersionStage', 'MoveToVersionId', 'RemoveFromVersionId'],
      (input) => this.#moveCurrent(input),
    ],
  };

  constructor(options: { dataFolder: string; secrets: SecretDefinition[]; clock?: { now(): number } }) {
    this.#secrets = options.secrets;
    this.#path = join(options.dataFolder, 'secret-values.json');
    this.#now = () => options.clock?.now() ?? Date.now();
    this.#values = existsSync(this.#path) ? JSON.parse(readFileSync(this.#path, 'utf8')) : {};
    for (const { arn, initialValue, generate } of options.secrets) {
      const text = initialValue ?? (generate && generated(generate));
      if (text !== undefined) this.#values[arn] ??= { versionId: randomUUID(), createdMs: this.#now(), text };
    }
    this.#save();
  }

  async call(operation: string, input: Fields): Promise<Fields> {
    return findOperation('Secrets Manager', this.#operations, operation, input)(input);
  }

  #get(input: Fields): Fields {
    const { arn, name } = this.#find(input);
    const value = this.#values[arn];
    if (value === undefined) throw notFound(' value for staging label: AWSCURRENT');
    return { ...identity(arn, name, value), CreatedDate: value.createdMs / 1000, SecretString: value.text };
  }

  #put(input: Fields): Fields {
    const { arn, name } = this.#find(input);
    const text = read.text(input, 'SecretString');
    if (Buffer.byteLength(text) > MAX_SECRET_BYTES) {
      throw new AwsError('InvalidParameterException', `A secret has at most ${MAX_SECRET_BYTES} bytes.`);
    }
    const versionId = read.optionalText(input, 'ClientRequestToken') ?? randomUUID();
    const value = { versionId, createdMs: this.#now(), text };
    const [label = CURRENT, ...others] = read.texts(input, 'VersionStages');
    if (others.length > 0) {
      throw new AwsError('UnknownOperationException', 'The local Secrets Manager supports one label for each version.');
    }
    const current = this.#values[arn];
    if (label === CURRENT) this.#values[arn] = value;
    else if (current === undefined) throw notFound(' value for staging label: AWSCURRENT');
    else this.#values[arn] = { ...current, staged: { ...value, label } };
    this.#save();
    return { ...identity(arn, name, value), VersionStages: [label] };
  }

  /** Moves AWSCURRENT to the staged version, if it is still on the version that the request names. */
  #moveCurrent(input: Fields): Fields {
    const { arn, name } = this.#find(input);
    if (read.text(input, 'VersionStage') !== CURRENT) {
      throw new AwsError('UnknownOperationException', `The local Secrets Manager moves only the label ${CURRENT}.`);
    }
    const { staged, ...current } = this.#values[arn] ?? { versionId: '' };
    if (read.optionalText(input, 'RemoveFromVersionId') !== current.versionId) {
      throw new AwsError(
        'InvalidParameterException',
        `The staging label ${CURRENT} is attached to version ${current.versionId}, so RemoveFromVersionId must name it.`,
      );
    }
    if (staged?.versionId !== read.text(input, 'MoveToVersionId')) throw notFound(' version.');
    const { label: _replaced, ...version } = staged;
    this.#values[arn] = version;
    this.#save();
    return { ARN: arn, Name: name };
  }

  #find(input: Fields): SecretDefinition {
    const wanted = read.text(input, 'SecretId');
    const secret = this.#secrets.find(({ name, arn }) => name === wanted || arn === wanted);
    if (secret === undefined) throw notFound('.');
    return secret;
  }

  #save(): void {
    replaceFile(this.#path, JSON.stringify(this.#values, null, 2));
  }
}

function identity(arn: string, name: string, { versionId }: StoredValue): Fields {
  return { ARN: arn, Name: name, VersionId: versionId, VersionStages: ['AWSCURRENT'] };
}

function generated(rules: NonNullable<SecretDefinition['generate']>): string {
  const alphabet = LETTERS_AND_DIGITS + (rules.excludePunctuation ? '' : PUNCTUATION);
  const text = Array.from({ length: GENERATED_LENGTH }, () => alphabet[randomInt(alphabet.length)]).join('');
  if (rules.secretStringTemplate === undefined || rules.generateStringKey === undefined) return text;
  return JSON.stringify({ ...JSON.parse(rules.secretStringTemplate), [rules.generateStringKey]: text });
}

function notFound(what: string): AwsError {
  return new AwsError('ResourceNotFoundException', `Secrets Manager can't find the specified secret${what}`);
}
