/** Secrets Manager on one file that only its owner can read, replaced as a whole at each change. */
import { randomInt, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AwsError, type JsonService } from '../aws/aws.ts';
import { replaceFile } from './durable-file.ts';
import { type Fields, fieldReader, operationOf } from './request-fields.ts';

export interface SecretDefinition {
  arn: string;
  name: string;
  /** Used while nothing is stored; a later PutSecretValue wins over it for good. */
  initialValue?: string;
  generate?: {
    length?: number;
    excludeCharacters?: string;
    excludePunctuation?: boolean;
    secretStringTemplate?: string;
    generateStringKey?: string;
  };
}

interface Version {
  id: string;
  stages: string[];
  createdMs: number;
  text?: string;
  /** Base64. */
  binary?: string;
}

const DEFAULT_LENGTH = 32;
const MAX_SECRET_BYTES = 65_536;
const ARN_SUFFIX_LENGTH = 6;
const CURRENT = 'AWSCURRENT';
const PREVIOUS = 'AWSPREVIOUS';
const LETTERS_AND_DIGITS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
const PUNCTUATION = '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~';

const read = fieldReader({ missing: 'InvalidParameterException', invalid: 'InvalidParameterException' });

export class LocalSecretsManager implements JsonService {
  readonly #secrets: SecretDefinition[];
  readonly #path: string;
  readonly #now: () => number;
  /** By ARN, oldest first. */
  readonly #stored: Record<string, Version[]>;
  readonly #operations: Record<string, (input: Fields) => Fields> = {
    GetSecretValue: (input) => this.#get(input),
    PutSecretValue: (input) => this.#put(input),
    DescribeSecret: (input) => this.#describe(input),
  };

  constructor(options: { dataFolder: string; secrets: SecretDefinition[]; clock?: { now(): number } }) {
    this.#secrets = options.secrets;
    this.#path = join(options.dataFolder, 'secrets.json');
    this.#now = () => options.clock?.now() ?? Date.now();
    this.#stored = existsSync(this.#path) ? JSON.parse(readFileSync(this.#path, 'utf8')) : {};
    for (const secret of options.secrets) {
      const text = secret.initialValue ?? (secret.generate === undefined ? undefined : generated(secret.generate));
      if (this.#stored[secret.arn] !== undefined || text === undefined) continue;
      this.#stored[secret.arn] = [{ id: randomUUID(), stages: [CURRENT], createdMs: this.#now(), text }];
    }
    this.#save();
  }

  async call(operation: string, input: Fields): Promise<Fields> {
    return operationOf('Secrets Manager', this.#operations, operation)(input);
  }

  #get(input: Fields): Fields {
    const secret = this.#find(input);
    const id = read.optionalText(input, 'VersionId');
    const stage = read.optionalText(input, 'VersionStage') ?? (id === undefined ? CURRENT : undefined);
    const version = this.#versions(secret).find(
      (candidate) => (id ?? candidate.id) === candidate.id && (stage === undefined || candidate.stages.includes(stage)),
    );
    if (version === undefined) throw notFound(id === undefined ? `value for staging label: ${stage}` : `value: ${id}`);
    return {
      ARN: secret.arn,
      Name: secret.name,
      VersionId: version.id,
      VersionStages: version.stages,
      CreatedDate: version.createdMs / 1000,
      ...(version.text === undefined ? { SecretBinary: version.binary } : { SecretString: version.text }),
    };
  }

  #put(input: Fields): Fields {
    const secret = this.#find(input);
    const text = read.optionalText(input, 'SecretString');
    const binary = read.optionalText(input, 'SecretBinary');
    checkValue(text, binary);
    const id = read.optionalText(input, 'ClientRequestToken') ?? randomUUID();
    const stages = read.texts(input, 'VersionStages');
    const versions = this.#versions(secret);
    const known = versions.find((version) => version.id === id);
    if (known !== undefined && (known.text !== text || known.binary !== binary)) {
      const message = `You can't use ClientRequestToken ${id} because that value is already in use for a version.`;
      throw new AwsError('ResourceExistsException', message);
    }
    const version = known ?? { id, stages: [], createdMs: this.#now(), text, binary };
    if (known === undefined) {
      versions.push(version);
      for (const stage of stages.length === 0 ? [CURRENT] : stages) moveStage(versions, version, stage);
      // A version that no label names cannot be asked for and is dropped.
      this.#stored[secret.arn] = versions.filter((candidate) => candidate.stages.length > 0);
      this.#save();
    }
    return { ARN: secret.arn, Name: secret.name, VersionId: version.id, VersionStages: version.stages };
  }

  #describe(input: Fields): Fields {
    const secret = this.#find(input);
    const VersionIdsToStages = Object.fromEntries(this.#versions(secret).map(({ id, stages }) => [id, stages]));
    return { ARN: secret.arn, Name: secret.name, VersionIdsToStages };
  }

  /** By name, by ARN, or by an ARN without its random suffix, as an imported secret has it. */
  #find(input: Fields): SecretDefinition {
    const wanted = read.text(input, 'SecretId');
    const secret = this.#secrets.find(
      ({ name, arn }) =>
        name === wanted ||
        arn === wanted ||
        (arn.startsWith(`${wanted}-`) && arn.length === wanted.length + 1 + ARN_SUFFIX_LENGTH),
    );
    if (secret === undefined) throw notFound('');
    return secret;
  }

  #versions({ arn }: SecretDefinition): Version[] {
    return this.#stored[arn] ?? [];
  }

  #save(): void {
    replaceFile(this.#path, JSON.stringify(this.#stored, null, 2));
  }
}

/** A label names one version at a time; the version that loses AWSCURRENT becomes AWSPREVIOUS. */
function moveStage(versions: Version[], to: Version, stage: string): void {
  const from = versions.find((version) => version !== to && version.stages.includes(stage));
  to.stages.push(stage);
  if (from === undefined) return;
  from.stages = from.stages.filter((label) => label !== stage);
  if (stage !== CURRENT) return;
  for (const version of versions) version.stages = version.stages.filter((label) => label !== PREVIOUS);
  from.stages.push(PREVIOUS);
}

function checkValue(text: string | undefined, binary: string | undefined): void {
  if ((text === undefined) === (binary === undefined)) {
    throw new AwsError('InvalidRequestException', 'You must provide either SecretString or SecretBinary.');
  }
  if (Buffer.byteLength(text ?? binary ?? '') > MAX_SECRET_BYTES) {
    throw new AwsError('InvalidParameterException', `A secret has at most ${MAX_SECRET_BYTES} bytes.`);
  }
}

function generated(rules: NonNullable<SecretDefinition['generate']>): string {
  const excluded = new Set(rules.excludeCharacters ?? '');
  const all = LETTERS_AND_DIGITS + (rules.excludePunctuation ? '' : PUNCTUATION);
  const alphabet = [...all].filter((character) => !excluded.has(character));
  if (alphabet.length === 0) throw new Error('a generated secret needs at least one character to choose from');
  const pick = () => alphabet[randomInt(alphabet.length)];
  const text = Array.from({ length: rules.length ?? DEFAULT_LENGTH }, pick).join('');
  if (rules.secretStringTemplate === undefined || rules.generateStringKey === undefined) return text;
  return JSON.stringify({ ...JSON.parse(rules.secretStringTemplate), [rules.generateStringKey]: text });
}

function notFound(what: string): AwsError {
  const message = `Secrets Manager can't find the specified secret${what === '' ? '.' : ` ${what}`}`;
  return new AwsError('ResourceNotFoundException', message);
}
