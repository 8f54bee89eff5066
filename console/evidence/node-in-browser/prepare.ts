import { BrowserBuffer } from './buffer.ts';

// Must be evaluated before the modules of the verifier.
Object.assign(globalThis, { Buffer: BrowserBuffer });
