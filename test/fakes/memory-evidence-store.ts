import type { EvidenceStore, FindingStore } from '../../lambdas/evidence/evidence-store.ts';
import { type Passage, undisturbed } from './passage.ts';

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

  get(key: string): Promise<Buffer> {
    return this.#passage('evidence.get', async () => {
      const content = this.#objects.get(key);
      if (!content) throw new Error(`there is nothing under ${key}`);
      return Buffer.from(content);
    });
  }

  find(key: string): Promise<Buffer | undefined> {
    return this.#passage('evidence.find', async () => {
      const content = this.#objects.get(key);
      return content && Buffer.from(content);
    });
  }

  /** The stored content, read without a call that a fault could affect. */
  peek(key: string): Buffer | undefined {
    return this.#objects.get(key);
  }

  keys(): string[] {
    return [...this.#objects.keys()];
  }
}
