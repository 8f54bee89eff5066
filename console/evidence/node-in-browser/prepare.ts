import * as z from 'zod';
import { BrowserBuffer } from './buffer.ts';

// Must be evaluated before the schemas of the verifier: zod would otherwise try to make functions from text, which the
// content security policy forbids and reports.
z.config({ jitless: true });
Object.assign(globalThis, { Buffer: BrowserBuffer });
