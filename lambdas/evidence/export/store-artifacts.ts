import type { Log } from '../../entry/ports.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import type { TerminalRun } from '../../run/run.ts';
import type { ArtifactReference } from '../../run/run-store.ts';
import type { EvidenceStore } from '../evidence-store.ts';
import { artifactKey, artifactsKey } from './artifacts.ts';
import type { ExportDraft } from './export-run.ts';

export const NDJSON = 'application/x-ndjson';

/** The artifacts of runs up to this size are lines of one object, those of a larger one objects of their own. */
const ONE_OBJECT_MAX_BYTES = 2 * 1024 * 1024;

export interface Artifact {
  name: ArtifactReference['name'];
  content: Buffer;
}

export interface Exported {
  run: TerminalRun;
  exported: ExportDraft;
}

interface StoredArtifacts {
  complete: boolean;
  /** Those that are stored. */
  artifacts: ArtifactReference[];
}

/** The artifacts of small runs are in one object, because S3 bills each object that is written. */
export async function storeArtifactsTogether(
  store: EvidenceStore,
  drafts: readonly Exported[],
  log: Log,
): Promise<ReadonlyMap<TerminalRun, StoredArtifacts>> {
  const isSmall = ({ exported }: Exported) => exported.bytes <= ONE_OBJECT_MAX_BYTES;
  const stored = new Map<TerminalRun, StoredArtifacts>();
  const object = new ArtifactObject();
  const small = drafts
    .filter(isSmall)
    .map(({ run, exported }) => ({ run, places: object.add(exported.artifacts(run)) }));
  const [first] = small;
  if (first) {
    const key = artifactsKey(first.run, object.content());
    const complete = object.isEmpty || (await tryToPut(store, key, object.content(), NDJSON, log));
    for (const { run, places } of small) {
      stored.set(run, { complete, artifacts: complete ? places.map((place) => ({ ...place, key })) : [] });
    }
  }
  for (const { run, exported } of drafts.filter((each) => !isSmall(each))) {
    stored.set(run, await storeEachArtifact(store, run, exported, log));
  }
  return stored;
}

/** Artifacts as lines. */
class ArtifactObject {
  readonly #lines: Buffer[] = [];
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }

  add(artifacts: Iterable<Artifact>): Omit<ArtifactReference, 'key'>[] {
    return [...artifacts].map(({ name, content }) => {
      const place = { name, offset: this.#bytes, sha256: sha256Hex(content), sizeBytes: content.length };
      this.#lines.push(content, Buffer.from('\n'));
      this.#bytes += content.length + 1;
      return place;
    });
  }

  content(): Buffer {
    return Buffer.concat(this.#lines);
  }
}

export async function storeEachArtifact(
  store: EvidenceStore,
  run: TerminalRun,
  draft: ExportDraft,
  log: Log,
): Promise<StoredArtifacts> {
  let complete = true;
  const artifacts: ArtifactReference[] = [];
  for (const { name, content } of draft.artifacts(run)) {
    const key = artifactKey(run, `${name}.json`);
    if (await tryToPut(store, key, content, 'application/json', log)) {
      artifacts.push({ name, key, sha256: sha256Hex(content), sizeBytes: content.length });
    } else complete = false;
  }
  return { complete, artifacts };
}

/** False if the object cannot be written now. */
export async function tryToPut(
  store: EvidenceStore,
  key: string,
  content: Buffer,
  type: string,
  log: Log,
): Promise<boolean> {
  try {
    await store.putOnce(key, content, type);
    return true;
  } catch (error) {
    log.warn('an export of a run failed and will be retried', { key, error });
    return false;
  }
}
