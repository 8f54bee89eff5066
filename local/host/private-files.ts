import { chmodSync, closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';

/** The data of the local host contains credentials and payloads, so other users of the machine must not read it. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

/** Creates a folder that only its owner can open, or changes an existing one. */
export function privateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: FOLDER_MODE });
  chmodSync(path, FOLDER_MODE);
}

/** Creates an empty file that only its owner can read, or changes an existing one. SQLite's further files get the same mode. */
export function privateFile(path: string): void {
  closeSync(openSync(path, 'a', FILE_MODE));
  chmodSync(path, FILE_MODE);
}

export function writePrivateFile(path: string, content: string | Uint8Array): void {
  writeFileSync(path, content, { mode: FILE_MODE });
  chmodSync(path, FILE_MODE);
}
