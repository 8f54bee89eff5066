import type { Clock, Ids } from '../entry/ports.ts';
import type { SecretPurpose } from '../entry/tenant-secrets.ts';
import { changeAuthor, type RecordedChanges } from '../pipeline/definition-changes.ts';
import { canonicalJson } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import type { Entries, SecretDocuments } from './secret-documents.ts';

/** After this many lost races somebody else is writing all the time. */
const ATTEMPTS_MAX = 5;
/** The limit of Secrets Manager. */
const DOCUMENT_MAX_BYTES = 65_536;
/** CloudFormation must generate an entry in every secret. This one means nothing. */
const PLACEHOLDER = 'unused';

export interface CredentialPorts {
  documents: SecretDocuments;
  changes: Pick<RecordedChanges, 'recordCredential'>;
  clock: Clock;
  ids: Ids;
}

interface ChangedEntry {
  tenant: string;
  purpose: SecretPurpose;
  entry: string;
  actor: string;
  /** The new value of the entry; undefined removes it. */
  next: (current: unknown) => unknown;
}

/** Changes one entry of a secret and leaves the others as they are. Returns false if that changes nothing. */
export async function changeEntry(ports: CredentialPorts, changed: ChangedEntry): Promise<boolean> {
  const { documents, changes, clock, ids } = ports;
  const { tenant, purpose, entry, actor, next } = changed;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    // A text that is not an object serves no reader. Secrets Manager still has it as the previous version.
    const { entries: before = {}, version: replaced } = await documents.read(tenant, purpose);
    const after = withEntry(before, entry, next(before[entry]));
    if (canonicalJson(after) === canonicalJson(withEntry(before, entry, before[entry]))) return false;
    assertFits(after, purpose);
    const version = ids.next('version');
    await documents.stage(tenant, purpose, after, version);
    const action = before[entry] === undefined ? 'created' : after[entry] === undefined ? 'deleted' : 'changed';
    const by = changeAuthor({ clock, ids }, actor);
    await changes.recordCredential(
      tenant,
      { name: `${purpose}/${entry}`, action, before: replaced, after: version },
      by,
    );
    if (await documents.publish(tenant, purpose, version, replaced)) return true;
  }
  throw new CountersignError(
    'CONFLICT',
    `other requests change the credentials of ${tenant} at the same time; try again`,
  );
}

function withEntry({ [PLACEHOLDER]: _meansNothing, ...entries }: Entries, name: string, value: unknown): Entries {
  const { [name]: _replaced, ...others } = entries;
  return value === undefined ? others : { ...others, [name]: value };
}

function assertFits(entries: Entries, purpose: SecretPurpose): void {
  const bytes = Buffer.byteLength(JSON.stringify(entries));
  if (bytes <= DOCUMENT_MAX_BYTES) return;
  throw new CountersignError(
    'INPUT_INVALID',
    `with this value the secret ${purpose} would have ${bytes} bytes, at most ${DOCUMENT_MAX_BYTES} are possible`,
  );
}
