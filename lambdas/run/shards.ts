import { sha256Hex } from './canonical-json.ts';

/** Which of so many shards an id belongs to: always the same one, and each gets its part. */
export function shardOf(id: string, shards: number): number {
  return Number.parseInt(sha256Hex(id).slice(0, 8), 16) % shards;
}
