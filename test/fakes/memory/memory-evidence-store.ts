import { bundlesIn, isBundleObject } from '../../../lambdas/evidence/bundle/bundle-object.ts';
import type { EvidenceStore, FindingStore, ObjectPart } from '../../../lambdas/evidence/evidence-store.ts';
import { type Passage, undisturbed } from '../passage.ts';

export class MemoryEvidenceStore implements EvidenceStore, FindingStore {
  readonly #objects = new Map<string, Buffer>();
  readonly #passage: Passage;

  constructor(passage: Passage = undisturbed) {
    this.#passage = passage;
  }

  putOnce(key: string, content: Buffer, _contentType: string): Promise<boolean> {
    return this.#passage('evidence.putOnce', async () => {
      if (this.#objects.has(key)) return false;
      this.#objects.set(key, Buffer.from(content));
      return true;
    });
  }

  get(key: string, part?: ObjectPart): Promise<Buffer> {
    return this.#passage('evidence.get', async () => {
      const content = this.#objects.get(key);
      if (!content) throw new Error(`there is nothing under ${key}`);
      return cut(content, part);
    });
  }

  find(key: string, part?: ObjectPart): Promise<Buffer | undefined> {
    return this.#passage('evidence.find', async () => {
      const content = this.#objects.get(key);
      return content && cut(content, part);
    });
  }

  /** Of the bundle of a run. No fault applies to this read. */
  file(runId: string, file: string): Buffer {
    for (const [key, content] of this.#objects) {
      if (!isBundleObject(key)) continue;
      const found = bundlesIn(content).find(({ document }) => JSON.parse(document.toString()).run.runId === runId);
      const bytes = file === 'bundle.json' ? found?.document : found?.envelope;
      if (bytes) return bytes;
    }
    throw new Error(`there is no ${file} of ${runId}`);
  }

  /** The stored content, read without a call that a fault could affect. */
  peek(key: string, part?: ObjectPart): Buffer | undefined {
    const content = this.#objects.get(key);
    return content && cut(content, part);
  }

  keys(): string[] {
    return [...this.#objects.keys()];
  }
}

const cut = (content: Buffer, part?: ObjectPart): Buffer =>
  Buffer.from(part ? content.subarray(part.offset, part.offset + part.sizeBytes) : content);
