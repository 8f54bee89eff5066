import type { SealMessage } from './functions.ts';
import type { Ending } from './invocation.ts';
import type { VirtualTime } from './virtual-time.ts';

const WINDOW_MS = 500;

export interface ReceivedSeal {
  message: SealMessage;
  ended(ending: Ending): void;
}

/** Gathers the messages that arrive within a window, as the event source of the sealing function does. */
export class SealBatches {
  readonly #time: VirtualTime;
  readonly #seal: (batch: readonly ReceivedSeal[]) => void;
  #gathered: ReceivedSeal[] = [];

  constructor(time: VirtualTime, seal: (batch: readonly ReceivedSeal[]) => void) {
    this.#time = time;
    this.#seal = seal;
  }

  receive(received: ReceivedSeal): void {
    this.#gathered.push(received);
    if (this.#gathered.length > 1) return;
    this.#time.after(WINDOW_MS, () => {
      const batch = this.#gathered;
      this.#gathered = [];
      this.#seal(batch);
    });
  }
}
