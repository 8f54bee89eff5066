import { chmodSync, closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';

/** The data of the local host has credentials and payloads in it: nobody else on the machine may read it. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

/** Makes a folder that only its owner can enter, or makes one that is there such a folder. */
export function privateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: FOLDER_MODE });
  chmodSync(path, FOLDER_MODE);
}

/** Makes an empty file that only its owner can read, or makes one that is there such a file. SQLite's own files beside it follow. */
export function privateFile(path: string): void {
  closeSync(openSync(path, 'a', FILE_MODE));
  chmodSync(path, FILE_MODE);
}

export function writePrivateFile(path: string, content: string | Uint8Array): void {
  writeFileSync(path, content, { mode: FILE_MODE });
  chmodSync(path, FILE_MODE);
}
