import { config } from 'zod';

/**
 * Zod compiles schemas with `new Function`, which the content security policy blocks and reports. Import this file before
 * anything that defines schemas.
 */
config({ jitless: true });
